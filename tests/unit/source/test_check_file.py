from __future__ import annotations

from stoker.source import check_file
from unit.source.source_builders import BUNDLE, FLEET, SERVICE, with_spec


def test_files_in_order_have_no_findings():
    for text in (FLEET, SERVICE, BUNDLE, f"{SERVICE}---\n{BUNDLE}"):
        assert check_file("f.yaml", text.encode()) == ()


def test_pools_are_left_to_the_fleet():
    assert check_file("f.yaml", with_spec("placement: {pools: [{name: any}]}").encode()) == ()


def test_faults_of_every_document_come_at_once():
    text = f"{with_spec('x: 1')}---\nkind: Other\n---\n{BUNDLE.replace('render', 'rendr')}"

    found = [(f.code, f.location.line) for f in check_file("f.yaml", text.encode())]

    assert found == [
        ("unknown-field", 8),
        ("wrong-kind", 10),
        ("field-missing", 15),
        ("unknown-field", 16),
    ]


def test_a_fleet_is_checked_as_a_fleet():
    (finding,) = check_file("f.yaml", (FLEET + "  mdoe: x\n").encode())

    assert str(finding) == (
        "f.yaml:9:3: spec.mdoe: unknown field [unknown-field] (did you mean mode?)"
    )


def test_an_unreadable_file_is_told():
    assert [f.code for f in check_file("f.yaml", b"a: [")] == ["invalid-yaml"]
    assert [f.code for f in check_file("f.yaml", b"#" * (2**20 + 1))] == ["file-too-large"]
