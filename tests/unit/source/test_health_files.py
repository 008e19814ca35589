from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stoker.cel import Cel
from stoker.cel import evaluator as cel_module
from stoker.errors import Severity
from stoker.model.health_file import HealthCheck
from stoker.source import SourceMemo, source
from stoker.source.health_files import read_health_file
from unit.source.source_builders import FLEET, SERVICE, MemoryRepo, codes, desired_of

PATH = "policies/health/widget.yaml"
CHECK = """\
apiVersion: stoker.dev/v1alpha1
kind: HealthPolicy
metadata: {name: widget}
spec:
  checks:
    - apiVersion: example.com/v1
      kind: Widget
      current: status.phase == 'Up'
      failed: >-
        status.?phase.orValue('') ==
        'Down'
"""
FILES: dict[str, Any] = {"fleet.yaml": FLEET, "models/qwen.yaml": SERVICE}


def wrong(text: str) -> list[tuple[str, str, str]]:
    """Place, code and field of each finding."""
    read = read_health_file(PATH, text.encode(), Cel())
    return [(str(f.location), f.code, f.field) for f in read.findings]


def test_the_fleets_own_files_are_read_at_the_commit():
    desired = desired_of({**FILES, PATH: CHECK})

    assert desired.findings == ()
    assert desired.health == (
        HealthCheck(
            "example.com",
            "Widget",
            PATH,
            current="status.phase == 'Up'",
            failed="status.?phase.orValue('') == 'Down'",
        ),
    )


@pytest.mark.parametrize(
    "path",
    ["policies/health/deeper/w.yaml", "policies/w.yaml", "models/policies/health/w.yaml"],
)
def test_only_the_folder_at_the_root_holds_health_files(path):
    """Files elsewhere belong to somebody else."""
    assert desired_of({**FILES, path: CHECK, "fleet.yaml": FLEET}).health == ()


def test_a_health_file_is_no_unit_file_whatever_the_fleet_includes():
    """Or the unit set would be unknown, and nothing pruned."""
    fleet = FLEET.replace("/models/*.yaml", "/**/*.yaml")

    desired = desired_of({**FILES, "fleet.yaml": fleet, PATH: CHECK})

    assert desired.findings == ()
    assert desired.unit_set_known


@pytest.mark.parametrize(
    ("old", "new", "place", "code", "field"),
    [
        pytest.param(
            "status.phase == 'Up'",
            "status.phase ==",
            f"{PATH}:8:31",
            "invalid-expression",
            "spec.checks[0].current",
            id="plain",
        ),
        pytest.param(
            "'Down'",
            "down",
            f"{PATH}:11:9",
            "invalid-expression",
            "spec.checks[0].failed",
            id="second line of a folded text",
        ),
        pytest.param(
            "status.phase == 'Up'",
            "\"'text'\"",
            f"{PATH}:8:17",
            "invalid-expression",
            "spec.checks[0].current",
            id="neither true nor false",
        ),
        pytest.param(
            "      failed:",
            "      faild:",
            f"{PATH}:9:7",
            "unknown-field",
            "spec.checks[0].faild",
            id="misspelt field",
        ),
        pytest.param(
            "      kind: Widget\n",
            "",
            f"{PATH}:6:7",
            "field-missing",
            "spec.checks[0].kind",
            id="no kind",
        ),
        pytest.param("kind: Widget", "kind: [", f"{PATH}:9:13", "invalid-yaml", "", id="no YAML"),
        pytest.param(
            "HealthPolicy", "HealthPolice", f"{PATH}:2:1", "invalid-value", "kind", id="other kind"
        ),
    ],
)
def test_what_is_wrong_has_file_line_and_column(old, new, place, code, field):
    assert (place, code, field) in wrong(CHECK.replace(old, new, 1))


def test_a_file_that_is_wrong_stops_no_unit():
    desired = desired_of({**FILES, PATH: CHECK.replace("'Up'", "up")})

    assert codes(desired) == ["invalid-expression"]
    assert len(desired.units) == 1
    assert desired.unit_set_known
    assert desired.broken == ()


def test_a_kind_whose_expression_is_wrong_keeps_its_check_with_the_problem():
    (check,) = desired_of({**FILES, PATH: CHECK.replace("'Up'", "up")}).health

    assert check.problem.startswith(f"{PATH}:8:")


def test_of_two_files_for_one_kind_the_first_by_name_is_used():
    other = CHECK.replace("'Up'", "'Other'").replace("example.com/v1", "example.com/v2")

    desired = desired_of({**FILES, PATH: CHECK, "policies/health/z.yaml": other})

    (finding,) = desired.findings
    assert (finding.code, finding.location.path) == (
        "duplicate-health-check",
        "policies/health/z.yaml",
    )
    assert PATH in finding.message
    assert [check.path for check in desired.health] == [PATH]


def test_a_file_that_did_not_change_is_read_once():
    memo = SourceMemo()
    repo = MemoryRepo({**FILES, PATH: CHECK})
    source(repo, "fleet.yaml", memo)
    reads = repo.reads

    repo.files["README.md"] = b"news"
    source(repo, "fleet.yaml", memo)

    assert reads == repo.reads


def test_a_file_that_left_takes_its_check_along():
    memo = SourceMemo()
    repo = MemoryRepo({**FILES, PATH: CHECK})
    assert source(repo, "fleet.yaml", memo).health

    del repo.files[PATH]

    assert source(repo, "fleet.yaml", memo).health == ()
    assert memo.health == {}


@pytest.mark.parametrize("files", [FILES, {**FILES, PATH: CHECK}], ids=["no file", "a file"])
def test_without_the_package_one_warning_says_what_is_missing(monkeypatch, files):
    monkeypatch.setattr(cel_module, "_runtime", lambda names: None)
    monkeypatch.setattr(cel_module, "_is_installed", lambda: False)

    (finding,) = desired_of(files).findings

    assert (finding.code, finding.severity) == ("expressions-missing", Severity.WARNING)
    assert "cel-expr-python" in finding.message


def test_an_empty_file_says_nothing():
    assert read_health_file(PATH, b"# nothing yet\n", Cel()).findings == ()


def test_a_lfs_pointer_is_told_as_what_it_is():
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n"

    assert [f.code for f in read_health_file(PATH, pointer, Cel()).findings] == ["lfs-pointer"]


def test_checks_of_one_file_keep_their_order():
    second = CHECK.split("checks:\n")[1].replace("Widget", "Gadget")

    read = read_health_file(PATH, (CHECK + second).encode(), Cel())

    first, other = (check for check, _ in read.checks)
    assert other == replace(first, kind="Gadget")
