"""What files say about order and waiting, and the faults of it that only show across files."""

from __future__ import annotations

import pytest
import yaml

from stoker.model.flow import Flow
from stoker.model.refs import UnitRef
from unit.source.source_builders import FLEET, desired_of, with_spec

BASE = UnitRef("ModelService", "llm", "base")


def service(name: str, *after: str, **spec: object) -> str:
    """A ModelService that depends on others of its namespace, one entry a line."""
    text = with_spec(f"replicas: {spec.pop('replicas', 1)}").replace("name: qwen", f"name: {name}")
    lines = [f"  - {{kind: ModelService, name: {other}}}" for other in after]
    more = yaml.safe_dump(spec).splitlines() if spec else []
    block = ["  dependsOn:", *lines] if after else []
    return "\n".join([text.rstrip(), *(f"  {line}" for line in more), *block]) + "\n"


def wrong(desired) -> list[tuple[str, str, str]]:
    return [(f.code, f.location.path, f.unit.rpartition("/")[2]) for f in desired.findings]


def test_every_field_reaches_the_unit():
    text = service("web", "base", suspend=True, timeout="5m", retryInterval="1m")

    desired = desired_of({"models/web.yaml": text, "models/base.yaml": service("base")})

    assert () == desired.findings
    assert Flow(True, (BASE,), 300_000, 60_000) == desired.units[1].flow
    assert Flow() == desired.units[0].flow


def test_the_fleet_gives_the_defaults_of_its_units():
    fleet = FLEET.rstrip() + "\n  timeout: 5m\n  retryInterval: 1m\n"

    desired = desired_of(
        {
            "fleet.yaml": fleet,
            "models/a.yaml": service("a"),
            "models/b.yaml": service("b", timeout="9m"),
        }
    )

    assert [(300_000, 60_000), (540_000, 60_000)] == [
        (unit.flow.timeout_ms, unit.flow.retry_ms) for unit in desired.units
    ]


def test_a_namespace_that_is_not_said_is_the_units_own():
    there = service("base").replace("{name: base}", "{name: base, namespace: other}")
    web = service("web").rstrip() + "\n  dependsOn: [{kind: ModelService, name: base}]\n"

    desired = desired_of({"models/web.yaml": web, "models/base.yaml": there})

    assert [("unknown-dependency", "models/web.yaml", "web")] == wrong(desired)
    assert "there is one in namespace other" == desired.findings[0].hint


def test_an_unknown_name_breaks_its_unit_and_names_the_closest():
    desired = desired_of(
        {"models/web.yaml": service("web", "bsae"), "models/base.yaml": service("base")}
    )

    assert [("unknown-dependency", "models/web.yaml", "web")] == wrong(desired)
    finding = desired.findings[0]
    assert ("spec.dependsOn[0]", "did you mean base?") == (finding.field, finding.hint)
    assert finding.location.line > 1
    assert ["web"] == [ref.name for ref in desired.broken]


def test_a_circle_is_told_at_every_link_with_the_place_of_the_next():
    files = {
        "models/a.yaml": service("a", "b"),
        "models/b.yaml": service("b", "c"),
        "models/c.yaml": service("c", "a"),
        "models/d.yaml": service("d", "a"),
    }

    desired = desired_of(files)

    assert [("dependency-circle", f"models/{n}.yaml", n) for n in "abc"] == wrong(desired)
    assert "models/b.yaml:" in desired.findings[0].hint
    assert all(finding.location.line > 1 for finding in desired.findings)
    assert ["d"] == [unit.ref.name for unit in desired.units], "it only waits"


def test_a_unit_that_waits_for_itself_is_told_so():
    desired = desired_of({"models/a.yaml": service("a", "a")})

    assert [("dependency-circle", "models/a.yaml", "a")] == wrong(desired)
    assert "waits for itself" in desired.findings[0].message


def test_with_an_unreadable_file_a_name_may_stand_there():
    """Unknown is not absent: the unit waits at run time instead of being wrong."""
    desired = desired_of({"models/web.yaml": service("web", "base"), "models/x.yaml": "{"})

    assert "unknown-dependency" not in {finding.code for finding in desired.findings}
    assert ["web"] == [unit.ref.name for unit in desired.units]


def after_base(ready: str) -> str:
    """A service that waits for base by an expression, which is written as given."""
    lines = [
        "  dependsOn:",
        "    - kind: ModelService",
        "      name: base",
        f"      ready: {ready}",
    ]
    return "\n".join([service("web").rstrip(), *lines]) + "\n"


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


def test_an_expression_reaches_the_unit_in_place_of_healthy():
    text = after_base("objects.size() > 0")

    desired = desired_of({"models/web.yaml": text, "models/base.yaml": service("base")})

    assert () == desired.findings
    flow = desired.units[1].flow
    assert Flow(depends_on=(BASE,), ready=((BASE, "objects.size() > 0"),)) == flow
    assert ("objects.size() > 0",) == flow.asks_of(BASE)
    assert {BASE} == flow.asked_by_expression
    assert Flow() == desired.units[0].flow


def test_two_entries_for_one_unit_both_count():
    """One without an expression asks for Healthy beside the other's expression."""
    text = after_base("objects.size() > 0") + "    - {kind: ModelService, name: base}\n"

    flow = desired_of({"models/web.yaml": text, "models/base.yaml": service("base")}).units[1].flow

    assert (BASE,) == flow.depends_on
    assert ("", "objects.size() > 0") == flow.asks_of(BASE)
    assert ("",) == flow.asks_of(UnitRef("Bundle", "llm", "other"))


@pytest.mark.parametrize(
    ("ready", "part", "column"),
    [
        pytest.param("objects.size() >", "ready:", 30, id="plain"),
        pytest.param("'objects.all(o, n)'", "ready:", 30, id="quoted"),
        pytest.param("|-\n        true &&\n          nothing", "nothing", 11, id="many lines"),
        pytest.param("objects.size()", "ready:", 14, id="neither true nor false"),
        pytest.param("status.ready", "ready:", 20, id="the names of health files"),
        pytest.param("quantities('1')", "ready:", 24, id="an unknown function"),
    ],
)
def test_a_wrong_expression_breaks_its_unit_with_file_line_and_column(ready, part, column):
    text = after_base(ready)

    desired = desired_of({"models/web.yaml": text, "models/base.yaml": service("base")})

    assert [("invalid-expression", "models/web.yaml", "web")] == wrong(desired)
    (finding,) = desired.findings
    assert "spec.dependsOn[0].ready" == finding.field
    assert (line_of(text, part), column) == (finding.location.line, finding.location.column)
    assert ["web"] == [ref.name for ref in desired.broken]


def test_a_wrong_expression_of_a_patch_is_told_where_the_patch_stands():
    entry = "{kind: ModelService, name: base, ready: nothing}"
    fleet = (
        FLEET.rstrip()
        + f"""
  unitPatches:
    - target: {{kind: ModelService, name: web}}
      patch:
        spec: {{dependsOn: [{entry}]}}
"""
    )

    desired = desired_of(
        {
            "fleet.yaml": fleet,
            "models/web.yaml": after_base("true"),
            "models/base.yaml": service("base"),
        }
    )

    assert [("invalid-expression", "fleet.yaml", "web")] == wrong(desired)
    assert line_of(fleet, entry) == desired.findings[0].location.line


def test_an_expression_without_text_is_no_expression():
    desired = desired_of({"models/web.yaml": after_base("''"), "models/base.yaml": service("base")})

    assert ["spec.dependsOn[0].ready"] == [finding.field for finding in desired.findings]
