from __future__ import annotations

from functools import cached_property

from stoker.model.refs import SourceRevision
from stoker.source import source
from unit.source.source_builders import FLEET, SERVICE, MemoryRepo


def repo_of(count: int) -> MemoryRepo:
    files = {f"models/{n:04}.yaml": SERVICE.replace("qwen", f"q{n}") for n in range(count)}
    return MemoryRepo({"fleet.yaml": FLEET, **files})


def test_the_same_commit_is_not_read_again(memo):
    repo = repo_of(3)
    first = source(repo, "fleet.yaml", memo)
    reads = repo.reads

    assert source(repo, "fleet.yaml", memo) is first
    assert repo.reads == reads


def test_a_commit_that_touches_one_file_parses_one_file(memo):
    repo = repo_of(20)
    source(repo, "fleet.yaml", memo)
    repo.reads = memo.parsed = 0
    repo.files["models/0007.yaml"] += b"  replicas: 5\n"

    desired = source(repo, "fleet.yaml", memo)

    assert (repo.reads, memo.parsed) == (1, 1)
    assert desired == source(repo, "fleet.yaml")


def test_a_changed_fleet_file_checks_units_anew_without_parsing_them(memo):
    repo = repo_of(5)
    source(repo, "fleet.yaml", memo)
    memo.parsed = 0
    repo.files["fleet.yaml"] = FLEET.replace("namespace: llm", "namespace: other").encode()

    desired = source(repo, "fleet.yaml", memo)

    assert memo.parsed == 0
    assert {unit.ref.namespace for unit in desired.units} == {"other"}


def test_a_moved_file_keeps_no_old_place(memo):
    repo = repo_of(1)
    source(repo, "fleet.yaml", memo)
    repo.files["models/moved.yaml"] = repo.files.pop("models/0000.yaml")

    desired = source(repo, "fleet.yaml", memo)

    assert desired.units[0].location.path == "models/moved.yaml"


def test_what_left_the_repository_is_forgotten(memo):
    repo = repo_of(5)
    source(repo, "fleet.yaml", memo)
    for name in ("0001", "0002", "0003"):
        del repo.files[f"models/{name}.yaml"]
    source(repo, "fleet.yaml", memo)

    assert len(memo.files) == len(memo.units) == 2


def test_another_tracked_branch_checks_the_status_branch_anew(memo):
    repo = repo_of(1)
    source(repo, "fleet.yaml", memo)
    repo.ref = "next"

    assert source(repo, "fleet.yaml", memo).revision.ref == "next"


class FrozenRepo(MemoryRepo):
    """Hashes its files once, so that a thousand folders are listed in no time."""

    @cached_property
    def commit(self) -> str:
        return super().commit

    @cached_property
    def listing(self):
        return super().tree(self.commit)

    def tree(self, commit):
        del commit
        return self.listing

    def left_out(self, commit):
        del commit
        return ()


def test_a_thousand_bundles_of_five_files_are_read_once(memo):
    """Each unit file once, and what it names never: speed itself is the benchmarks' to measure."""
    files: dict[str, str | bytes] = {
        "fleet.yaml": FLEET.replace("/models/*.yaml", "/bundles/*/bundle.yaml")
    }
    bundle = "apiVersion: stoker.dev/v1alpha1\nkind: Bundle\nmetadata: {{name: b{}}}\nspec: {{render: {{manifests: ['*.yaml']}}}}\n"
    for n in range(1000):
        files[f"bundles/{n}/bundle.yaml"] = bundle.format(n)
        files |= {f"bundles/{n}/{m}.yaml": f"{n}-{m}" for m in range(5)}
    repo = FrozenRepo(files)
    revision = SourceRevision("main", repo.commit)
    assert repo.listing
    cold = source(repo, "fleet.yaml", memo, revision=revision)
    read, parsed = repo.reads, memo.parsed
    memo.last.keep(None)
    warm = source(repo, "fleet.yaml", memo, revision=revision)

    assert cold == warm
    assert len(cold.units) == 1000
    assert (1001, 1000) == (read, parsed)
    assert (read, parsed) == (repo.reads, memo.parsed)
