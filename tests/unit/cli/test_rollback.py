"""`stoker rollback`: a commit on a new branch; nothing that is deployed or checked out moves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from unit.source.source_builders import FLEET, SERVICE

OTHER = SERVICE.replace("{name: qwen}", "{name: other}")


class Clone:
    """A real clone with a work tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main", str(folder), at=folder.parent)
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.invalid")

    def git(self, *arguments: str, at: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=at or self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, files: dict[str, str]) -> str:
        for path, text in files.items():
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "A change")
        return self.git("rev-parse", "HEAD")

    def show(self, revision: str, path: str) -> str:
        return self.git("show", f"{revision}:{path}")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    folder = tmp_path / "fleet"
    folder.mkdir()
    return Clone(folder)


def service(replicas: int) -> str:
    return SERVICE.rstrip() + f"\n  replicas: {replicas}\n"


@pytest.fixture
def first(clone: Clone) -> str:
    """The commit to go back to; two more stand on top of it."""
    found = clone.commit({"fleet.yaml": FLEET, "models/q.yaml": service(1), "models/o.yaml": OTHER})
    clone.commit({"models/q.yaml": service(7)})
    clone.commit({"models/o.yaml": OTHER.rstrip() + "\n  replicas: 5\n"})
    return found


def test_the_file_comes_back_on_a_branch_of_its_own(shell, clone, first):
    head, before = clone.git("rev-parse", "HEAD"), clone.git("status", "--porcelain")
    answer = shell("rollback", "qwen", "--to", first[:7], "--path", clone.folder)

    branch = f"rollback/qwen-{first[:7]}"
    assert (0, f"{branch} {clone.git('rev-parse', branch)}\n") == (answer.code, answer.out)
    assert service(1).strip() == clone.show(branch, "models/q.yaml")
    assert "replicas: 5" in clone.show(branch, "models/o.yaml"), "later commits stay"
    assert [head, head] == [clone.git("rev-parse", name) for name in ("main", f"{branch}^")]
    assert before == clone.git("status", "--porcelain")
    assert "main" == clone.git("branch", "--show-current")
    assert "Ada <ada@example.invalid>" == clone.git("log", "-1", "--format=%an <%ae>", branch)
    assert f"Roll llm/qwen back to {first[:7]}" == clone.git("log", "-1", "--format=%s", branch)
    assert f"git push origin {branch}" in answer.err


def test_a_branch_that_is_there_is_never_moved(shell, clone, first):
    clone.git("branch", "main-2")
    at = clone.git("rev-parse", "main-2")
    for name in ("main", "main-2"):
        answer = shell("rollback", "qwen", "--to", first, "--path", clone.folder, "--branch", name)
        assert (3, True) == (answer.code, "branch-exists" in answer.err)
    assert at == clone.git("rev-parse", "main-2") == clone.git("rev-parse", "main")


def test_a_file_with_other_units_in_it_goes_back_only_where_they_are_the_same(shell, clone):
    both = f"{service(1)}---\n{OTHER}"
    first = clone.commit({"fleet.yaml": FLEET, "models/all.yaml": both})
    clone.commit({"models/all.yaml": f"{service(7)}---\n{OTHER}"})
    second = clone.git("rev-parse", "HEAD")
    ok = shell("rollback", "qwen", "--to", first, "--path", clone.folder)
    clone.commit({"models/all.yaml": f"{service(9)}---\n{OTHER.rstrip()}\n  replicas: 3\n"})
    refused = shell("rollback", "qwen", "--to", second, "--path", clone.folder)

    assert 0 == ok.code
    assert (3, True) == (refused.code, "rollback-shared-file" in refused.err)
    assert "llm/other" in refused.err


def test_where_the_file_moved_its_old_words_stand_at_its_new_place(shell, clone):
    first = clone.commit({"fleet.yaml": FLEET, "models/q.yaml": service(1)})
    clone.git("mv", "models/q.yaml", "models/moved.yaml")
    clone.commit({"models/moved.yaml": service(7)})
    shell("rollback", "qwen", "--to", first, "--path", clone.folder, "--branch", "back")

    assert service(1).strip() == clone.show("back", "models/moved.yaml")
    assert ["fleet.yaml", "models/moved.yaml"] == clone.git(
        "ls-tree", "-r", "--name-only", "back"
    ).split()


def test_what_the_fleets_defaults_make_of_it_today_is_told(shell, clone):
    first = clone.commit({"fleet.yaml": FLEET, "models/q.yaml": service(1)})
    fleet = (
        FLEET.rstrip() + "\n  defaults: {namespace: llm, modelService: {gpu: {minMemory: 70Gi}}}\n"
    )
    fleet = fleet.replace("  defaults: {namespace: llm}\n", "")
    clone.commit({"fleet.yaml": fleet, "models/q.yaml": service(7)})
    answer = shell("rollback", "qwen", "--to", first, "--path", clone.folder)

    assert 0 == answer.code
    assert "defaults or patches changed: gpu_min_memory_bytes" in answer.err


def test_a_file_that_would_be_wrong_today_makes_no_branch(shell, clone):
    """Its pool left the Fleet since."""
    pooled = service(1) + "  placement: {pools: [{name: l4}]}\n"
    first = clone.commit({"fleet.yaml": FLEET, "models/q.yaml": pooled})
    fleet = FLEET.replace("{name: l4}, ", "")
    clone.commit({"fleet.yaml": fleet, "models/q.yaml": pooled.replace("l4", "h100")})
    answer = shell("rollback", "qwen", "--to", first, "--path", clone.folder)

    assert (2, True) == (answer.code, "unknown-pool" in answer.err)
    assert "main" == clone.git("branch", "--format=%(refname:short)")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("qwne", "--to", "HEAD~1"), 2, "services: llm/other, llm/qwen"),
        (("qwen", "--to", "HEAD"), 2, "is the same at"),
        (("qwen", "--to", "no-such"), 2, "ref-not-found"),
        (("qwen", "--to", "HEAD~2", "--branch", "a..b"), 2, "ref-invalid"),
        (("qwen", "--to", "HEAD~2", "--branch", "-d"), 2, "ref-invalid"),
    ],
)
def test_what_cannot_be_rolled_back_says_why(shell, clone, first, arguments, code, said):
    del first
    answer = shell("rollback", *arguments, "--path", clone.folder)

    assert code == answer.code
    assert said in answer.err
    assert "main" == clone.git("branch", "--format=%(refname:short)")


def test_outside_of_a_clone_it_says_so(shell, tmp_path):
    answer = shell("rollback", "qwen", "--to", "HEAD~1", "--path", tmp_path)

    assert (3, True) == (answer.code, "repository-not-found" in answer.err)
