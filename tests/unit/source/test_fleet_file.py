from __future__ import annotations

import pytest

from stoker.errors import BadInput, SourceLocation
from stoker.model.fleet import (
    CapacityType,
    DeletionPolicy,
    FleetMode,
    Pin,
    Pool,
    Requirement,
    SnapshotDetail,
    StatusSettings,
)
from stoker.model.prune import MaxUnits, PruneMode, PruneSettings
from stoker.source import read_fleet
from unit.source.source_builders import FLEET


def faults(text: str, ref: str = "main") -> list[tuple[str, str]]:
    with pytest.raises(BadInput) as caught:
        read_fleet("fleet.yaml", text.encode(), ref)
    return [(finding.code, finding.field) for finding in caught.value.findings]


def test_defaults_are_those_of_the_design():
    fleet = read_fleet("fleet.yaml", FLEET.encode()).fleet

    assert (fleet.name, fleet.cluster_uid, fleet.mode) == ("prod", "6a0c1f0e", FleetMode.OBSERVE)
    assert fleet.pools == (Pool("l4"), Pool("h100"))
    assert fleet.prune == PruneSettings(PruneMode.AUTO, MaxUnits(None, 10))
    assert fleet.status == StatusSettings()
    assert fleet.status_branch == "stoker-status/prod"
    assert fleet.deletion_policy is DeletionPolicy.ORPHAN
    assert fleet.location == SourceLocation("fleet.yaml", 1, 1)


def test_everything_said_is_taken():
    text = FLEET.replace("  pools: [{name: l4}, {name: h100}]\n", "") + (
        "  mode: Correct\n"
        "  pools:\n"
        "  - name: l4\n"
        "    nodeSelector:\n"
        "      matchLabels: {pool: l4, a: b}\n"
        "      matchExpressions: [{key: k, operator: In, values: [y, x]}]\n".replace(
            "y, x", '"y", "x"'
        )
        + "    capacityType: Spot\n"
        '    pricePerGPUHour: "0.80"\n'
        "    pin: Required\n"
        "  prune: {mode: Confirm, maxUnits: 3}\n"
        "  status: {branch: refs/heads/status, flushInterval: 2m, heartbeat: 30m, snapshot: None}\n"
        "  templates: [/templates, own]\n"
        "  deletionPolicy: Orphan\n"
    )

    fleet = read_fleet("clusters/eu/fleet.yaml", text.encode()).fleet

    assert fleet.mode is FleetMode.CORRECT
    assert fleet.pools == (
        Pool(
            "l4",
            (("a", "b"), ("pool", "l4")),
            (Requirement("k", "In", ("x", "y")),),
            CapacityType.SPOT,
            "0.80",
            Pin.REQUIRED,
        ),
    )
    assert fleet.prune == PruneSettings(PruneMode.CONFIRM, MaxUnits(3, None))
    assert fleet.status == StatusSettings("status", 120_000, 1_800_000, SnapshotDetail.NONE)
    assert fleet.template_paths == ("templates", "clusters/eu/own")
    assert fleet.deletion_policy is DeletionPolicy.ORPHAN


@pytest.mark.parametrize(
    ("line", "code", "field"),
    [
        ("mode: Obseve", "invalid-value", "spec.mode"),
        ("mdoe: Observe", "unknown-field", "spec.mdoe"),
        ("pools: [{name: a}, {name: a}]", "duplicate-pool", "spec.pools[1].name"),
        ("pools: [{name: A_b}]", "invalid-name", "spec.pools[0].name"),
        ("pools: [{name: a, pricePerGPUHour: 0.5}]", "invalid-type", "spec.pools[0].pricePerGPUHour"),
        ("pools: [{name: a, pricePerGPUHour: cheap}]", "invalid-value", "spec.pools[0].pricePerGPUHour"),
        ("pools: [{name: a, nodeSelector: {matchExpressions: [{key: k, operator: In}]}}]", "invalid-value", "spec.pools[0].nodeSelector.matchExpressions[0]"),
        ("pools: [{name: a, nodeSelector: {matchExpressions: [{key: k, operator: Exists, values: [a]}]}}]", "invalid-value", "spec.pools[0].nodeSelector.matchExpressions[0]"),
        ("pools: [{name: a, nodeSelector: {matchExpressions: [{key: k, operator: Gt}]}}]", "invalid-value", "spec.pools[0].nodeSelector.matchExpressions[0].operator"),
        ("pools: [{name: a, nodeSelector: {matchLabels: {k: 1}}}]", "invalid-type", "spec.pools[0].nodeSelector.matchLabels.k"),
        ("prune: {maxUnits: 101%}", "invalid-value", "spec.prune.maxUnits"),
        ("prune: {maxUnits: -1}", "invalid-value", "spec.prune.maxUnits"),
        ("status: {branch: main}", "status-branch-is-source", "spec.status.branch"),
        ("status: {branch: a..b}", "ref-invalid", "spec.status.branch"),
        ("status: {heartbeat: 0s}", "invalid-value", "spec.status.heartbeat"),
        ("status: {flushInterval: 5}", "invalid-type", "spec.status.flushInterval"),
        ("templates: [../../x]", "path-outside-repository", "spec.templates[0]"),
        ("unitPatches: [{target: {kind: Pod, name: a}, patch: {spec: {}}}]", "invalid-value", "spec.unitPatches[0].target.kind"),
        ("unitPatches: [{target: {kind: Bundle, name: a}, patch: {metadata: {}}}]", "field-missing", "spec.unitPatches[0].patch.spec"),
        ("policies: {}", "not-implemented-yet", "spec.policies"),
        ("dependsOn: []", "not-implemented-yet", "spec.dependsOn"),
        ("changeWindows: [{name: a, schedule: 0 9 * *, duration: 1h}]", "invalid-schedule", "spec.changeWindows[0].schedule"),
        ("changeWindows: [{name: a, schedule: 0 9 * * *, duration: 1h, timeZone: Berlin}]", "unknown-time-zone", "spec.changeWindows[0].timeZone"),
        ("changeWindows: [{name: a, schedule: 0 9 * * *, duration: 1s}]", "invalid-value", "spec.changeWindows[0].duration"),
        ("changeWindows: [{name: a, schedule: 0 9 * * *, duration: 1h}, {name: a, schedule: 0 9 * * *, duration: 1h}]", "duplicate-window", "spec.changeWindows[1].name"),
        ("suspend: 1", "invalid-type", "spec.suspend"),
        ("timeout: 10ms", "invalid-value", "spec.timeout"),
        ("defaults: {modelService: {replcas: 1}}", "unknown-field", "spec.defaults.modelService.replcas"),
        ("defaults: {modelService: {engine: {cudaGraphs: Maybe}}}", "invalid-value", "spec.defaults.modelService.engine.cudaGraphs"),
        ("defaults: {modelService: {render: {overlays: []}}}", "not-implemented-yet", "spec.defaults.modelService.render.overlays"),
        ("defaults: {bundle: {}}", "unknown-field", "spec.defaults.bundle"),
        ("mode: no", "ambiguous-scalar", "spec.mode"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_told_at_its_line(line, code, field):
    top = line.partition(":")[0]
    kept = [each for each in FLEET.splitlines() if not each.startswith(f"  {top}:")]
    text = "\n".join([*kept, f"  {line}"]) + "\n"

    found = faults(text)

    assert (code, field) in found
    assert {each for _, each in found} <= {field, "spec.unitPatches[0].patch.metadata"}


@pytest.mark.parametrize(
    ("old", "new", "code", "field"),
    [
        ("stoker.dev/v1alpha1", "stoker.dev/v1", "wrong-api-version", "apiVersion"),
        ("kind: Fleet", "kind: Flet", "wrong-kind", "kind"),
        ("{name: prod}", "{}", "field-missing", "metadata.name"),
        ("  cluster: {uid: 6a0c1f0e}\n", "", "field-missing", "spec.cluster"),
        ("{uid: 6a0c1f0e}", "{}", "field-missing", "spec.cluster.uid"),
        ("uid: 6a0c1f0e", 'uid: ""', "invalid-value", "spec.cluster.uid"),
        ("  include: [/models/*.yaml]\n", "", "field-missing", "spec.include"),
        ("[/models/*.yaml]", "[]", "invalid-value", "spec.include"),
        ("[/models/*.yaml]", "[../../x]", "path-outside-repository", "spec.include[0]"),
        ("name: prod", "name: Prod_EU", "invalid-name", "metadata.name"),
        ("name: prod", "name: prod, labels: {a: b}", "not-implemented-yet", "metadata.labels"),
    ],
)
def test_what_a_fleet_must_have(old, new, code, field):
    assert (code, field) in faults(FLEET.replace(old, new))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "invalid-yaml"),
        (b"- a\n", "invalid-type"),
        (FLEET.encode() + b"---\nkind: Bundle\n", "multiple-documents"),
        (FLEET.encode() + b"  x: [\n", "invalid-yaml"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "lfs-pointer"),
        (b"#" * (2**20 + 1), "file-too-large"),
        (b"\xff\xfe", "invalid-encoding"),
    ],
)
def test_an_unreadable_fleet_file_stops_everything(data, code):
    with pytest.raises(BadInput) as caught:
        read_fleet("fleet.yaml", data)

    assert [code] == [finding.code for finding in caught.value.findings]
    assert caught.value.code == code


def test_all_faults_come_at_once_and_in_order():
    text = (
        FLEET.replace("6a0c1f0e", "no").replace("name: prod", "name: P")
        + "  mdoe: x\n  policies: {}\n"
    )

    assert faults(text) == [
        ("invalid-name", "metadata.name"),
        ("ambiguous-scalar", "spec.cluster.uid"),
        ("unknown-field", "spec.mdoe"),
        ("not-implemented-yet", "spec.policies"),
    ]


def test_a_name_is_guessed():
    with pytest.raises(BadInput, match="prod-eu would be one"):
        read_fleet("f", FLEET.replace("name: prod", "name: Prod_EU").encode())


def test_defaults_need_not_be_whole():
    text = FLEET.replace("{namespace: llm}", "{modelService: {engine: {image: x}}}")

    assert read_fleet("fleet.yaml", text.encode()).settings.defaults.value == {
        "spec": {"engine": {"image": "x"}}
    }
