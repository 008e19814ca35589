from __future__ import annotations

import pytest

from stoker.errors import BadInput, Unreachable
from stoker.git import FolderRepo
from stoker.model.refs import SourceRevision, UnitRef
from stoker.source import source
from unit.source.source_builders import (
    BUNDLE,
    FLEET,
    SERVICE,
    MemoryRepo,
    codes,
    desired_of,
    fleet_with,
    named,
    with_spec,
)

QWEN = UnitRef("ModelService", "llm", "qwen")


def test_units_come_sorted_with_their_places():
    desired = desired_of(
        {"models/z.yaml": named("b"), "models/a.yaml": f"# hi\n{SERVICE}---\n{named('a')}"}
    )

    assert [unit.ref.name for unit in desired.units] == ["a", "b", "qwen"]
    assert [str(unit.location) for unit in desired.units] == [
        "models/a.yaml:10:1",
        "models/z.yaml:1:1",
        "models/a.yaml:2:1",
    ]
    assert desired.findings == ()
    assert desired.broken == ()
    assert desired.unit_set_known


def test_the_revision_is_the_tracked_one_unless_one_is_given():
    repo = MemoryRepo({"fleet.yaml": FLEET, "models/q.yaml": SERVICE})

    assert source(repo, "fleet.yaml").revision == SourceRevision("main", repo.commit)
    assert source(repo, "fleet.yaml", revision="v1").revision.ref == "v1"
    given = SourceRevision("x", repo.commit)
    assert source(repo, "/fleet.yaml", None, revision=given).revision == given


def test_one_bad_unit_leaves_the_others_alone():
    desired = desired_of({"models/a.yaml": SERVICE, "models/b.yaml": with_spec("x: 1", named("b"))})

    assert [unit.ref.name for unit in desired.units] == ["qwen"]
    assert [ref.name for ref in desired.broken] == ["b"]
    assert desired.unit_set_known


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(b"a: [", "invalid-yaml", id="no YAML"),
        pytest.param(b"<<<<<<< HEAD\n", "conflict-marker", id="conflict"),
        pytest.param(b"\xff\xfe", "invalid-encoding", id="UTF-16"),
        pytest.param(b"version https://git-lfs.github.com/spec/v1\n", "lfs-pointer", id="LFS"),
        pytest.param(b"# " + b"x" * 2**20, "file-too-large", id="over 1 MiB"),
        pytest.param(b"x" * (5 * 2**20 + 1), "file-too-large", id="over what the repo reads"),
        pytest.param(b"- a\n", "invalid-type", id="a list"),
        pytest.param(b"metadata: {name: x}\n", "field-missing", id="no kind"),
        pytest.param(b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n", "wrong-kind", id="other kind"),
        pytest.param(FLEET.encode(), "wrong-kind", id="a fleet"),
        pytest.param(SERVICE.replace("{name: qwen}", "{name: Qwen}").encode(), "invalid-name", id="bad name"),
        pytest.param(SERVICE.replace("{name: qwen}", "{name: 5}").encode(), "invalid-name", id="number as name"),
        pytest.param(SERVICE.replace("{name: qwen}", "{name: q, namespace: A}").encode(), "invalid-name", id="bad namespace"),
        pytest.param(SERVICE.replace("metadata: {name: qwen}\n", "").encode(), "field-missing", id="no name"),
    ],
)  # fmt: skip
def test_a_file_that_may_hold_unknown_units_makes_the_unit_set_unknown(text, code):
    """Else the unit that the file used to hold would be pruned."""
    desired = desired_of({"models/bad.yaml": text, "models/good.yaml": named("good")})

    if code == "invalid-name" and b"name: 5" in text:
        code = "invalid-type"
    assert code in codes(desired)
    assert not desired.unit_set_known
    assert [unit.ref.name for unit in desired.units] == ["good"]


def test_units_before_a_syntax_error_are_known_and_not_trusted():
    desired = desired_of({"models/a.yaml": f"{SERVICE}---\na: [\n"})

    assert codes(desired) == ["invalid-yaml"]
    assert desired.units == ()
    assert desired.broken == (QWEN,)
    assert not desired.unit_set_known


def test_a_kind_is_guessed():
    desired = desired_of({"models/q.yaml": SERVICE.replace("ModelService", "ModelServce")})

    assert desired.findings[0].hint == "did you mean ModelService?"


def test_another_version_of_the_api_is_refused_and_the_unit_known():
    desired = desired_of({"models/q.yaml": SERVICE.replace("v1alpha1", "v1beta9")})

    assert codes(desired) == ["wrong-api-version"]
    assert desired.broken == (QWEN,)
    assert desired.unit_set_known


def test_a_unit_defined_twice_is_broken_in_both_places():
    desired = desired_of(
        {"models/a.yaml": SERVICE, "models/b.yaml": SERVICE, "models/c.yaml": named("c")}
    )

    assert [(f.code, f.location.path, f.message) for f in desired.findings] == [
        ("duplicate-unit", "models/a.yaml", f"{QWEN} is defined again in models/b.yaml:1:1"),
        ("duplicate-unit", "models/b.yaml", f"{QWEN} is defined again in models/a.yaml:1:1"),
    ]
    assert [unit.ref.name for unit in desired.units] == ["c"]
    assert desired.broken == (QWEN,)


def test_one_name_in_two_namespaces_or_kinds_is_two_units():
    other = SERVICE.replace("{name: qwen}", "{name: qwen, namespace: other}")
    bundle = named("qwen", BUNDLE).replace('"*.yaml"', '"/m.yaml"')

    desired = desired_of(
        {"models/a.yaml": SERVICE, "models/b.yaml": other, "models/c.yaml": bundle, "m.yaml": ""}
    )

    assert [str(unit.ref) for unit in desired.units] == [
        "Bundle/llm/qwen",
        "ModelService/llm/qwen",
        "ModelService/other/qwen",
    ]


def test_a_unit_without_namespace_needs_a_default():
    fleet = FLEET.replace("  defaults: {namespace: llm}\n", "")

    desired = desired_of({"fleet.yaml": fleet, "models/q.yaml": SERVICE})

    assert [(f.code, f.field) for f in desired.findings] == [
        ("namespace-missing", "metadata.namespace")
    ]
    assert not desired.unit_set_known


def test_a_pattern_without_files_is_an_error_and_nothing_is_pruned():
    """A folder that was renamed is not a fleet that was emptied."""
    fleet = FLEET.replace("[/models/*.yaml]", "[/models/*.yaml, /bundles/*/bundle.yaml, /models]")

    desired = desired_of({"fleet.yaml": fleet, "models/q.yaml": SERVICE})

    assert [(f.code, f.field) for f in desired.findings] == [
        ("include-no-match", "spec.include[1]"),
        ("include-no-match", "spec.include[2]"),
    ]
    assert desired.findings[1].hint == "that is a folder; write /models/*.yaml"
    assert not desired.unit_set_known
    assert [unit.ref for unit in desired.units] == [QWEN]


def test_files_without_any_unit_are_an_error():
    desired = desired_of({"models/q.yaml": "# all gone\n"})

    assert codes(desired) == ["no-units"]
    assert not desired.unit_set_known


def test_patterns_are_relative_to_the_fleet_file_which_is_left_out():
    fleet = FLEET.replace("[/models/*.yaml]", "['*.yaml', ../../models/*.yaml, /models/q.yaml]")
    repo = MemoryRepo(
        {
            "clusters/eu/fleet.yaml": fleet,
            "clusters/eu/a.yaml": named("a"),
            "models/q.yaml": SERVICE,
        }
    )

    desired = source(repo, "clusters/eu/fleet.yaml")

    assert desired.findings == ()
    assert [unit.ref.name for unit in desired.units] == ["a", "qwen"]


def test_a_missing_fleet_file_stops_everything():
    repo = MemoryRepo({"clusters/eu/fleet.yaml": FLEET})

    with pytest.raises(BadInput) as caught:
        source(repo, "cluster/eu/fleet.yaml")

    assert caught.value.code == "fleet-file-missing"
    assert caught.value.findings[0].hint == "did you mean clusters/eu/fleet.yaml?"


def test_status_must_not_go_to_the_branch_that_is_read():
    """Each status commit would be a new revision, for ever."""
    repo = MemoryRepo(
        {"fleet.yaml": fleet_with("status: {branch: main}"), "models/q.yaml": SERVICE}
    )

    with pytest.raises(BadInput) as caught:
        source(repo, "fleet.yaml")

    assert caught.value.code == "status-branch-is-source"


class SilentRepo(MemoryRepo):
    def fetch(self):
        raise Unreachable("no answer", code="repository-unreachable")


def test_an_unreachable_repository_stays_that():
    with pytest.raises(Unreachable):
        source(SilentRepo({}), "fleet.yaml")


def test_uncommitted_files_of_a_folder_are_read_the_same_way(tmp_path):
    for name, text in {
        "fleet.yaml": FLEET,
        "models/q.yaml": SERVICE,
        "models/big.yaml": "x" * (5 * 2**20 + 1),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    desired = source(FolderRepo(tmp_path), "fleet.yaml")

    assert [unit.ref for unit in desired.units] == [QWEN]
    assert str(desired.findings[0]) == (
        "models/big.yaml: has 5242881 bytes, over the limit of 5242880 [file-too-large]"
    )


def test_consent_to_delete_comes_from_the_commit():
    files = {"models/q.yaml": SERVICE}

    desired = desired_of(files, message="Remove\n\nStoker-Allow-Delete: ModelService/llm/old")

    assert desired.allow_delete == ("ModelService/llm/old",)


def test_crlf_and_a_byte_order_mark_change_nothing():
    """reliability-security c.3 row 65."""
    plain = desired_of({"models/q.yaml": SERVICE})
    odd = desired_of({"models/q.yaml": b"\xef\xbb\xbf" + SERVICE.replace("\n", "\r\n").encode()})

    assert plain.units[0].spec == odd.units[0].spec
    assert odd.findings == ()
