"""The wheel carries everything that works in a checkout, and nothing else lands beside it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = {
    "templates": "templates",
    "overlays": "overlays",
    "policies": "policies",
    "examples": "examples",
    "tests/controlplane": "controlplane",
}


@pytest.fixture(scope="module")
def names(tmp_path_factory) -> set[str]:
    """File names in a wheel built from this tree."""
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--wheel", "-o", str(out), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(out.glob("*.whl"))) as wheel:
        return set(wheel.namelist())


def tracked(folder: str) -> set[str]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", folder],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return {name for name in listed if (ROOT / name).is_file()}


@pytest.mark.parametrize("folder", sorted(SHIPPED))
def test_the_wheel_ships_every_file_of(folder, names):
    """Templates, overlays and policies must be found without a checkout."""
    expected = {
        f"stoker/_shipped/{SHIPPED[folder]}/{name.removeprefix(folder + '/')}"
        for name in tracked(folder)
    }

    assert expected - names == set()


def test_only_the_package_reaches_site_packages(names):
    """Nothing named controller, templates or tests may land beside other people's packages."""
    tops = {name.split("/")[0] for name in names}

    assert {"stoker"} == {top for top in tops if not top.endswith(".dist-info")}


def test_the_type_marker_is_shipped(names):
    """py.typed makes the annotations count for others."""
    assert "stoker/py.typed" in names
