"""A new repository works as it stands."""

import subprocess

import jsonschema
import pytest
import yaml

from stoker.cli.schema import all_schemas
from unit.cli.shell import UID


def test_it_validates_and_holds_only_fields_that_are_obeyed(shell):
    """A first try that meets not-implemented-yet is the last one."""
    folder = shell.fleet("prod-eu")
    answer = shell("validate", folder)

    assert (answer.code, answer.err) == (0, "ok: 1 fleet, 2 units\n")
    for path in [*folder.glob("clusters/**/*.yaml"), *folder.glob("models/*.yaml")]:
        document = yaml.safe_load(path.read_text())
        jsonschema.Draft7Validator(all_schemas()[document["kind"]]).validate(document)


def test_it_starts_in_mode_observe_on_the_cluster_named(shell):
    fleet = yaml.safe_load((shell.fleet() / "clusters/local/fleet.yaml").read_text())

    assert fleet["spec"]["mode"] == "Observe"
    assert fleet["spec"]["cluster"]["uid"] == UID


def test_without_a_cluster_it_says_what_to_fill_in(shell):
    answer = shell("init", shell.folder / "new")

    assert answer.code == 0
    assert "clusters/local/fleet.yaml (spec.cluster.uid)" in answer.err
    assert answer.err.endswith(f"next: cd {shell.folder / 'new'} && stoker validate\n")


def test_schema_comments_lead_to_the_schemas(shell):
    folder = shell.fleet()
    led = 0
    for path in folder.rglob("*.yaml"):
        head = path.read_text().splitlines()[0]
        if "$schema=" in head:
            led += 1
            assert (path.parent / head.split("$schema=")[1]).resolve().is_file()

    assert led == 3


def test_nothing_is_overwritten(shell):
    folder = shell.fleet()
    (folder / "models" / "qwen-0.5b.yaml").write_text("mine")
    answer = shell("init", folder, "--cluster-uid", UID)

    assert answer.code == 2
    assert "nothing was written" in answer.err
    assert (folder / "models" / "qwen-0.5b.yaml").read_text() == "mine"


def test_a_fresh_clone_with_a_readme_is_fine(shell):
    """Forges make one; it stays."""
    folder = shell.folder / "clone"
    folder.mkdir()
    (folder / "README.md").write_text("ours")
    answer = shell("init", folder, "--cluster-uid", UID)

    assert answer.code == 0
    assert (folder / "README.md").read_text() == "ours"
    assert shell("validate", folder).code == 0


@pytest.mark.parametrize("name", ["Prod", "prod_eu", "-x", "a" * 64, ""])
def test_a_name_that_is_no_label_is_refused(shell, name):
    """It becomes part of a branch and of labels."""
    answer = shell("init", shell.folder / "new", "--fleet", name, "--cluster-uid", UID)

    assert answer.code == 2
    assert not (shell.folder / "new").exists()


def test_git_does_not_see_the_mirror_of_a_controller_run_here(shell):
    """`stoker run --once` in the folder keeps its mirror in .stoker/git."""
    folder = shell.fleet()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".stoker" / "git" / "mirror.git").mkdir(parents=True)
    (folder / ".stoker" / "git" / "mirror.git" / "HEAD").write_text("x")
    seen = subprocess.run(
        ["git", "-C", str(folder), "status", "--porcelain", "-uall"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip

    assert ".stoker/schema/fleet.json" in seen
    assert ".stoker/git" not in seen
