"""The README's tour on the control plane that it starts itself."""

import os
import subprocess

import pytest

from shape.docs_console import ROOT, environment, run_steps, steps, told
from stoker.sim.controlplane_binary import find_or_build

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


@pytest.fixture
def stranger(tmp_path):
    """An empty folder; whatever cluster was left running in it is ended."""
    found = find_or_build(lambda _text: None)
    if isinstance(found, str):
        if os.environ.get("CI") == "true":
            pytest.fail(f"no control plane: {found}")
        pytest.skip(f"no control plane: {found}")
    yield tmp_path
    subprocess.run(
        ["stoker", "dev", "cluster", "--stop"],
        env=environment(tmp_path),
        check=False,
        capture_output=True,
        timeout=60,
    )


def test_the_tour_of_the_readme_does_and_prints_what_it_says(stranger):
    """Five minutes of a stranger decide whether there are more."""
    ran = run_steps(steps(ROOT / "README.md", "console"), stranger)

    assert all(one.as_promised for one in ran), told(ran)
