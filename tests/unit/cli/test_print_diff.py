"""The layouts of `stoker diff`, from ChangeSets made by hand."""

from __future__ import annotations

from dataclasses import replace

import jsonschema
import pytest

from stoker.cli.diff_forms import diff_json, diff_names, diff_unified
from stoker.cli.field_lines import FieldLine
from stoker.cli.narrow import within
from stoker.cli.output_schemas import output_schemas
from stoker.cli.print_diff import diff_text
from stoker.cli.style import Style
from stoker.diff.summary import Summary
from stoker.errors import Finding, SourceLocation
from stoker.model.change import Action, Change, ChangeSet, FieldChange, Impact, UnitChanges
from stoker.model.plan import Retirement, RetireStage
from stoker.model.refs import ObjectRef, UnitRef
from unit.diff.diff_builders import QWEN, A, config, desired, manifest_of, placement, secret

PLAIN = Style(no_color=True)
WANTED = desired(QWEN, A)
BUDGET = ObjectRef("policy", "PodDisruptionBudget", "llm", "qwen")
IMAGE = FieldChange("spec.template.spec.containers[name=engine].image", "x:1", "x:2")


def change(body, action=Action.CREATE, unit=QWEN, **fields):
    manifest = manifest_of(unit, body)
    return Change(manifest.ref, action, manifest, manifest.body, **fields)


def replaced(name, old, node="n1", fields=(IMAGE,)):
    """A new placement that takes over from an old one."""
    ref = ObjectRef("apps", "Deployment", "llm", old)
    return change(placement(name, node=node), replaces=ref, fields=fields)


def of(*changes, unit=QWEN, **more):
    return ChangeSet((UnitChanges(unit, tuple(changes), **more),))


def text(changes):
    return diff_text(changes, WANTED, PLAIN)


def test_nothing_printed_means_nothing_differs():
    assert text(of(change(config(), Action.UNCHANGED))) == ""


def test_creates_and_changes_of_a_unit():
    changes = of(
        change(placement("qwen-2", node="n2")),
        Change(
            BUDGET, Action.CHANGE, fields=(FieldChange("spec.maxUnavailable", 1, 2),), payload={}
        ),
        Change(
            ObjectRef("", "Service", "llm", "qwen"),
            Action.CHANGE,
            fields=(FieldChange("metadata.labels", None, {"a": "b"}),),
            impact=Impact.RESTART,
            held_back=("template.labels[team]",),
        ),
    )

    assert text(changes) == (
        "ModelService llm/qwen                                                   qwen.yaml\n"
        "+ create  Deployment llm/qwen-2  n2\n"
        "~ change  PodDisruptionBudget llm/qwen                                  in place\n"
        "    .spec.maxUnavailable                          1 -> 2\n"
        "~ change  Service llm/qwen                                              restarts pods\n"
        '    .metadata.labels                              (none) -> {"a": "b"}\n'
        "    held back until the next restart: template.labels[team]\n"
    )


def test_identical_replaces_print_their_difference_once():
    """Three replicas of one rev differ by the same fields; thrice the same is noise."""
    changes = of(*(replaced(f"new-{n}", f"old-{n}", node=f"n{n}") for n in (1, 2, 3)))

    assert text(changes) == (
        "ModelService llm/qwen                                                   qwen.yaml\n"
        "± replace Deployment new-1  n1   for old-1\n"
        "± replace Deployment new-2  n2   for old-2\n"
        "± replace Deployment new-3  n3   for old-3\n"
        "    beside the node, the same field in all 3:\n"
        "    .template.containers[engine].image            x:1 -> x:2\n"
    )


def test_replaces_that_differ_stand_with_their_own_fields():
    other = FieldChange("spec.template.spec.nodeName", None, "n9")
    changes = of(replaced("new-1", "old-1"), replaced("new-2", "old-2", fields=(IMAGE, other)))
    lines = text(changes).splitlines()

    assert lines.index("± replace Deployment new-2  n1   for old-2") == 3
    assert 2 == sum("x:1 -> x:2" in line for line in lines)


def test_a_retirement_that_is_replaced_is_no_second_line():
    """Old and new placement are one replace, not a create and a delete."""
    leaving = Retirement("old-1", "u", RetireStage.STOP_TRAFFIC, "new rev")
    lone = Retirement("old-9", "u", RetireStage.DRAIN, "scaled down")
    changes = of(replaced("new-1", "old-1"), retirements=(leaving, lone))

    assert text(changes).splitlines()[-1] == "- retire  Deployment old-9  Drain: scaled down"
    assert "- retire  Deployment old-1" not in text(changes)


def test_a_note_that_several_share_is_printed_once():
    note = "its namespace or kind comes first"
    changes = of(*(change(config(name), note=note) for name in ("a", "b", "c")), unit=A)

    assert text(changes) == (
        "Bundle llm/a                                                            a.yaml\n"
        "+ create  ConfigMap llm/a\n+ create  ConfigMap llm/b\n+ create  ConfigMap llm/c\n"
        "    for these 3: its namespace or kind comes first\n"
    )


def test_why_nothing_is_deleted_is_said_once():
    """The reason of the whole pass stands below, not under each of the objects kept."""
    hold = "2 units would lose objects and prune.maxUnits allows 1"
    kept = [
        Change(ObjectRef("", "ConfigMap", "llm", n), Action.KEEP, code="prune-held", note=hold)
        for n in ("a", "b")
    ]
    gone = UnitRef("Bundle", "llm", "gone")
    changes = replace(of(*kept, unit=gone), prune_hold=hold)

    assert text(changes) == (
        "Bundle llm/gone                                                         (not in Git)\n"
        "= keep    ConfigMap llm/a\n= keep    ConfigMap llm/b\n"
        "\n"
        f"Nothing is deleted: {hold}\n"
    )


def test_findings_stop_a_unit_visibly():
    finding = Finding(SourceLocation("q.yaml", 3, 5), "template-error", "no such name")
    changes = of(findings=(finding,), complete=False)

    assert "! q.yaml:3:5: no such name [template-error]" in text(changes)


def test_what_is_left_to_others_is_no_drift():
    scaled = change(
        placement("qwen"),
        Action.UNCHANGED,
        left_to_others=(("spec.replicas", "live 3, Git 2: HorizontalPodAutoscaler/q owns it"),),
    )

    assert text(of(scaled)) == (
        "Left to others (not drift)\n"
        "  Deployment qwen  .spec.replicas  live 3, Git 2: HorizontalPodAutoscaler/q owns it\n"
    )


def test_colour_changes_nothing_but_colour(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    changes = of(change(placement("qwen-2", node="n2")))
    painted = diff_text(changes, WANTED, Style())

    assert "\x1b[32m+ create \x1b[0m" in painted
    assert text(changes) == painted.replace("\x1b[32m", "").replace("\x1b[0m", "").replace(
        "\x1b[1m", ""
    )


def test_unified_shows_new_objects_whole_and_changed_ones_by_field():
    changes = of(
        change(config("c", {"a": "1"})),
        Change(BUDGET, Action.CHANGE, fields=(FieldChange("spec.maxUnavailable", 1, 2),)),
        Change(ObjectRef("", "Service", "llm", "old"), Action.DELETE),
        unit=A,
    )
    shown = diff_unified(changes)

    assert "--- /dev/null\n+++ git/ConfigMap/llm/c\n+apiVersion: v1\n" in shown
    assert "+data:\n+  a: '1'\n" in shown
    assert "--- live/policy/PodDisruptionBudget/llm/qwen\n" in shown
    assert "@@ spec.maxUnavailable @@\n-1\n+2\n" in shown
    assert "--- live/Service/llm/old\n+++ /dev/null\n" in shown


@pytest.mark.parametrize("form", [text, diff_unified, lambda c: str(diff_json(c, WANTED, {}))])
def test_no_form_shows_a_secret(form):
    """cases.md row 149 and its kin: a diff is pasted into tickets."""
    value = "c2VjcmV0LXZhbHVl"
    pod = placement("qwen", container={"env": [{"name": "HF_TOKEN", "value": value}]})
    changes = of(change(secret("s", data={"token": value}), unit=A), change(pod))

    assert value not in form(changes)


@pytest.mark.parametrize("form", [text, diff_unified], ids=["text", "unified"])
def test_no_foreign_text_steers_the_terminal(form):
    """b.H row 61 (CVE-2021-21303): live values, refusals and managers are written by others."""
    evil = "\x1b[2J\x1b]0;owned\x07\rall good"
    fields = (FieldChange(f"data.{evil}", evil, [evil]),)
    changes = of(
        change(config("c"), Action.CHANGE, fields=fields, note=evil, code="conflict"),
        change(config("d", data={"a": evil})),
        change(config("e"), Action.UNCHANGED, left_to_others=(("data.a", evil),)),
        findings=(Finding(SourceLocation("a.yaml", 1, 1), "x", evil),),
    )

    assert all(line.isprintable() for line in form(changes).split("\n"))


def test_names_are_lines_for_scripts():
    changes = of(
        replaced("new-1", "old-1"),
        change(config("c")),
        change(config("same"), Action.UNCHANGED),
        Change(ObjectRef("", "Namespace", "", "llm"), Action.KEEP),
        retirements=(Retirement("old-1", "u", RetireStage.DRAIN, "new rev"),),
    )

    assert diff_names(changes).splitlines() == [
        "replace Deployment/llm/new-1",
        "create ConfigMap/llm/c",
        "keep Namespace/llm",
        "retire Deployment/llm/old-1",
    ]


def test_json_is_as_published():
    changes = replace(
        of(
            replaced("new-1", "old-1"),
            change(config("c"), note="n", code="kind-not-found", held_back=("x",)),
            change(config("d"), Action.UNCHANGED, left_to_others=(("spec.replicas", "HPA"),)),
            retirements=(Retirement("old-1", "u", RetireStage.DRAIN, "new rev"),),
            findings=(Finding(SourceLocation("q.yaml", 3, 5), "bug", "m"),),
        ),
        prune_hold="why",
    )
    fields = dict.fromkeys(Summary.__dataclass_fields__, 1)
    document = diff_json(changes, WANTED, fields)

    jsonschema.validate(document, output_schemas()["Diff"])
    assert document["summary"]["gpusBefore"] == 1
    assert [o["action"] for o in document["units"][0]["objects"]] == [
        "replace", "create", "unchanged",
    ]  # fmt: skip


def test_a_namespace_shows_only_its_units():
    other = UnitChanges(UnitRef("Bundle", "web", "site"), (change(config(), unit=A),))
    changes = ChangeSet((*of(change(config())).units, other))

    assert [u.unit.namespace for u in within(changes, "web").units] == ["web"]
    assert within(changes, "") is changes


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (
            "spec.template.spec.containers[name=engine].args[3]",
            ".template.containers[engine].args[3]",
        ),
        (
            "spec.template.spec.containers[name=c].ports[containerPort=8000,protocol=TCP].name",
            ".template.containers[c].ports[8000/TCP].name",
        ),
        (
            "spec.template.spec.containers[name=c].env[name=HF_HOME].value",
            ".template.containers[c].env[HF_HOME].value",
        ),
        ("spec.ports[port=53,protocol=UDP].targetPort", ".spec.ports[53/UDP].targetPort"),
        (
            "spec.template.spec.containers[name=c].volumeMounts[mountPath=/dev/shm]",
            ".template.containers[c].volumeMounts[/dev/shm]",
        ),
        ("metadata.finalizers[a.b/c]", ".metadata.finalizers[a.b/c]"),
        ("spec.template.metadata.labels[a.b/c]", ".template.labels[a.b/c]"),
    ],
)
def test_items_are_named_by_the_values_of_their_keys(path, shown):
    field = FieldChange(path, "1", "2")
    changed = change(placement("qwen-1"), Action.CHANGE, fields=(field,))

    assert f"    {shown} " in text(of(changed))


def test_a_replace_names_the_node_it_leaves():
    new = replace(replaced("new-1", "old-1", node="l4-od-3"), replaces_node="l4-od-1")

    assert "± replace Deployment new-1  l4-od-3   for old-1 on l4-od-1\n" in text(of(new))


def test_lines_of_the_file_stand_above_the_objects():
    """ux.md: the line a reader has changed, then what it does."""
    heads = (
        FieldLine(9, "spec.model.revision", "a" * 40, "b" * 40, "restarts pods"),
        FieldLine(21, "spec.replicas", 3, 4, "no restart"),
    )
    shown = diff_text(of(replaced("new-1", "old-1")), WANTED, PLAIN, {QWEN: heads})

    assert shown.splitlines()[1:4] == [
        "   9  spec.model.revision  aaaaaaa… -> bbbbbbb…   restarts pods",
        "  21  spec.replicas        3 -> 4                 no restart",
        "± replace Deployment new-1  n1   for old-1",
    ]


@pytest.mark.parametrize(
    ("impact", "word"),
    [
        (Impact.NONE, "in place"),
        (Impact.SCALE, "scale"),
        (Impact.PLACEMENT, "placement, restarts pods"),
        (Impact.RESTART, "restarts pods"),
        (Impact.RECREATE, "recreate needed"),
    ],
)
def test_every_class_has_its_word(impact, word):
    changed = change(placement("qwen-1"), Action.CHANGE, fields=(IMAGE,), impact=impact)

    assert text(of(changed)).splitlines()[1].endswith(f"  {word}")
