"""Design section 3: every field is obeyed or refused, never ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stoker.errors import SourceLocation
from stoker.model.fleet import ModelService
from stoker.model.scaling import ScalingMode
from stoker.source.check_file import check_file
from stoker.source.fleet_file import read_fleet
from stoker.source.refused import (
    REFUSED_FIELDS,
    REFUSED_KINDS,
    UNDECIDED_BUDGETS,
    UNDECIDED_SCALING,
)
from stoker.source.scaling_model import scaling_of
from stoker.source.schema_fleet import FleetFile, fleet_from_file
from stoker.source.schema_scaling import ScalingBlock
from stoker.source.schema_sources import MetricSourceBlock, sources_of
from unit.source.source_builders import BUNDLE, FLEET, SERVICE, desired_of, with_spec

EXAMPLE = Path(__file__).with_name("design_example.yaml").read_text("utf-8")

FLOW = {
    "spec.dependsOn", "spec.dependsOn[].kind", "spec.dependsOn[].namespace",
    "spec.dependsOn[].name", "spec.dependsOn[].ready", "spec.suspend", "spec.timeout", "spec.retryInterval",
}  # fmt: skip
"""What every unit may say; obeyed by test_flow.py and the stories of order."""

OBEYED = {
    "Fleet": {
        "spec.cluster", "spec.mode", "spec.include", "spec.defaults", "spec.unitPatches",
        "spec.pools", "spec.prune", "spec.templates", "spec.status", "spec.deletionPolicy",
        "spec.ignore", "spec.disruption",
        "spec.changeWindows", "spec.prefetch", "spec.suspend", "spec.timeout", "spec.retryInterval",
    },
    "ModelService": {
        "spec.model", "spec.engine", "spec.gpu", "spec.resources", "spec.parallelism",
        "spec.replicas", "spec.scaling.mode", "spec.placement.mode", "spec.placement.pools",
        "spec.placement.order", "spec.placement.signalMaxAge",
        "spec.priority", "spec.placement.spot", "spec.placement.topologySpread",
        "spec.placement.whenFull", "spec.cache.type", "spec.cache.path", "spec.cache.claim", "spec.cache.prefetch", "spec.cache.maxSize",
        "spec.coldStart", "spec.drain", "spec.disruption.minReady",
        "spec.disruption.maxConcurrentMoves", "spec.disruption.onNotice", "spec.update", "spec.expose.service",
        "spec.expose.inferencePool", "spec.render.template",
        "spec.podTemplate", "spec.adopt", *FLOW,
    },
    "Bundle": {"spec.render.manifests", "spec.render.jinja", *FLOW},
}  # fmt: skip
"""What the first release obeys, as the issue lists it."""
SCALING_FIELDS = {f"spec.scaling.{i.alias or n}" for n, i in ScalingBlock.model_fields.items()}
OBEYED["ModelService"] |= SCALING_FIELDS - set(UNDECIDED_SCALING)
OBEYED["Fleet"] |= {"spec.metricSources", "spec.maxGPUs"} - {*UNDECIDED_BUDGETS}
"""As the switch of refused.py stands; what becomes of each is tested in test_scaling.py."""


def leaves(value: Any, at: str = "") -> set[str]:
    """Dotted paths of everything that holds no further map."""
    if isinstance(value, dict) and value:
        return set().union(*(leaves(v, f"{at}.{k}" if at else k) for k, v in value.items()))
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return set().union(*(leaves(item, f"{at}[]") for item in value))
    return {at}


def below(path: str, parents: set[str]) -> bool:
    return any(path == p or path.startswith((f"{p}.", f"{p}[")) for p in parents)


def documents() -> dict[str, tuple[str, dict[str, Any]]]:
    parts = EXAMPLE.split("---\n")
    return {value["kind"]: (text, value) for text in parts for value in [yaml.safe_load(text)]}


@pytest.mark.parametrize("kind", ["Fleet", "ModelService", "Bundle"])
def test_each_field_of_the_design_is_obeyed_or_refused(kind):
    text, value = documents()[kind]

    findings = check_file("x.yaml", text.encode())

    assert {finding.code for finding in findings} == {"not-implemented-yet"}
    refused = {finding.field.replace("[0]", "[]") for finding in findings}
    fields = {leaf for leaf in leaves(value) if leaf.startswith("spec.")}
    accepted = {leaf for leaf in fields if not below(leaf, refused)}
    assert accepted == {
        leaf for leaf in fields if below(leaf, OBEYED[kind]) and not below(leaf, refused)
    }
    overlap = {field for field in refused if below(field, OBEYED[kind]) and "[]" not in field}
    assert overlap == set(), "obeyed fields are not refused"
    named = set(REFUSED_FIELDS[kind]) - {"metadata.labels", "metadata.annotations"}
    assert refused == named, "every line of the table stands in the example"


def test_every_refused_field_has_line_and_column():
    text, _ = documents()["ModelService"]

    findings = check_file("models/x.yaml", text.encode())

    by_field = {finding.field: str(finding.location) for finding in findings}
    lines = text.splitlines()
    line = next(n for n, each in enumerate(lines, 1) if "  render: " in each)
    assert by_field["spec.render.helm"].startswith(f"models/x.yaml:{line}:")
    assert all(finding.location.line and finding.location.column for finding in findings)


def test_a_scaling_block_without_mode_follows_load():
    desired = desired_of({"models/q.yaml": with_spec("scaling: {maxReplicas: 4}")})

    (unit,) = desired.units
    assert () == desired.findings
    assert isinstance(unit.spec, ModelService)
    assert ScalingMode.STOKER is unit.spec.scaling_mode


@pytest.mark.parametrize("name", ["labels", "annotations"])
def test_metadata_that_is_not_obeyed_is_refused(name):
    text = SERVICE.replace("{name: qwen}", f"{{name: qwen, {name}: {{a: b}}}}")

    desired = desired_of({"models/q.yaml": text})

    assert [(f.code, f.field) for f in desired.findings] == [
        ("not-implemented-yet", f"metadata.{name}")
    ]


def test_a_scale_policy_is_refused_and_stays_a_unit():
    """Its name is known, so other units may be pruned and it may not."""
    text, _ = documents()["ScalePolicy"]

    desired = desired_of({"models/p.yaml": text, "models/q.yaml": SERVICE})

    assert [(f.code, f.field) for f in desired.findings] == [("not-implemented-yet", "kind")]
    assert [str(ref) for ref in desired.broken] == ["ScalePolicy/llm/other"]
    assert REFUSED_KINDS == ("ScalePolicy",)
    assert desired.unit_set_known
    assert len(desired.units) == 1


SERVICE_CHANGES = {
    "model.uri": "hf://Qwen/Other",
    "model.revision": "a" * 40,
    "model.size": "2Gi",
    "model.servedNames": "[other]",
    "model.tokenSecretRef.name": "other",
    "model.tokenSecretRef.key": "other",
    "engine.type": None,
    "engine.version": '"0.29"',
    "engine.image": "registry.example/other",
    "engine.args": '["--other"]',
    "engine.cudaGraphs": "Capture",
    "parallelism.tensor": "1",
    "parallelism.pipeline": "1",
    "parallelism.nodes": "2",
    "placement.groupTopology.key": "rack",
    "gpu.count": "3",
    "gpu.resourceName": "amd.com/gpu",
    "gpu.minMemory": "2Gi",
    "gpu.products": "[other]",
    "resources.requests.cpu": "2",
    "resources.requests.memory": "2Gi",
    "resources.shm": "2Gi",
    "priority": "100",
    "replicas": "7",
    "scaling.mode": "External",
    "placement.mode": "Scheduler",
    "placement.order": "BinPack",
    "placement.signalMaxAge": "1m",
    "placement.pools[].name": "h100",
    "placement.pools[].base": "2",
    "placement.spot.maxPercent": "50",
    "placement.topologySpread.key": "zone",
    "placement.topologySpread.maxSkew": "2",
    "placement.reclaim": "LowerPriority",
    "placement.whenFull": "Unpinned",
    "cache.type": "HostPath",
    "cache.path": "/other",
    "cache.claim": "other",
    "cache.image": "registry.example/weights:2",
    "cache.maxSize": "2Gi",
    "cache.rootDisk": "Allow",
    "cache.prefetch.nodes": "3",
    "coldStart.deadline": "1h",
    "drain.endpointSync": "1s",
    "drain.max": "1s",
    "drain.shutdown": "1s",
    "disruption.minReady": "0",
    "disruption.maxConcurrentMoves": "2",
    "disruption.onNotice": "HardKill",
    "update.maxConcurrent": "2",
    "update.pause.afterReplicas": "2",
    "update.pause.duration": "15m",
    "update.onFailure": "Revert",
    "expose.service.port": "9000",
    "expose.inferencePool": "other",
    "expose.endpointPicker.service": "other",
    "expose.endpointPicker.port": "9003",
    "expose.endpointPicker.failureMode": "FailOpen",
    "render.template": "other/v1",
    "podTemplate.metadata": "{labels: {a: b}}",
    "podTemplate.spec": "{hostNetwork: true}",
    "adopt.kind": None,
    "adopt.name": "other",
}
"""Every field of the schema, with a value that is no default; None has only one value."""

BESIDE = {
    "placement.pools[].base": "placement: {pools: [{name: l4}]}",
    "placement.topologySpread.maxSkew": "placement: {topologySpread: {key: zone}}",
    "adopt.name": "placement: {mode: Scheduler}\nadopt: {name: first}",
    "cache.path": "cache: {type: HostPath, path: /first}",
    "cache.claim": "cache: {type: PVC, claim: first}",
    "cache.type": "cache: {type: PVC, claim: first}",
    "cache.image": "model: {uri: 'file:///x'}\ncache: {type: Image}",
    "cache.maxSize": "cache: {type: HostPath, path: /x}",
    "cache.rootDisk": "cache: {type: HostPath, path: /x}",
    "parallelism.tensor": "parallelism: {tensor: 2, pipeline: 1}\ngpu: {count: 2}",
    "parallelism.pipeline": "parallelism: {tensor: 1, pipeline: 2}\ngpu: {count: 2}",
    "placement.groupTopology.key": "parallelism: {nodes: 2}",
    "expose.endpointPicker.service": "expose: {inferencePool: first}",
    "expose.endpointPicker.port": "expose: {inferencePool: first}",
    "expose.endpointPicker.failureMode": "expose: {inferencePool: first}",
    "model.tokenSecretRef.name": "model: {tokenSecretRef: {name: first, key: first}}",
    "model.tokenSecretRef.key": "model: {tokenSecretRef: {name: first, key: first}}",
}
"""What must stand beside a field for the change to be legal."""

AFTER = {
    "placement.pools[].base": "placement: {pools: [{name: l4, base: 2}]}",
    "placement.topologySpread.maxSkew": "placement: {topologySpread: {key: zone, maxSkew: 2}}",
    "adopt.name": "placement: {mode: Scheduler}\nadopt: {name: other}",
    "cache.type": "cache: {type: HostPath, path: /x}",
    "parallelism.tensor": "parallelism: {tensor: 1, pipeline: 2}\ngpu: {count: 2}",
    "parallelism.pipeline": "parallelism: {tensor: 2, pipeline: 1}\ngpu: {count: 2}",
    "placement.groupTopology.key": "parallelism: {nodes: 2}\nplacement: {groupTopology: {key: rack}}",
}


def schema_leaves(model: Any, at: str = "") -> set[str]:
    from stoker.source.findings import _model_of  # noqa: PLC0415

    found: set[str] = set()
    for name, info in model.model_fields.items():
        spelled = info.alias or name
        path = f"{at}.{spelled}" if at else spelled
        inner = _model_of(info.annotation)
        if inner is None:
            found.add(path)
        else:
            many = str(info.annotation).startswith("list")
            found |= schema_leaves(inner, path + ("[]" if many else ""))
    return found


def merged(base: dict[str, Any], lines: str) -> dict[str, Any]:
    for key, value in (yaml.safe_load(lines) or {}).items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            base[key] = {**base[key], **value}
        else:
            base[key] = value
    return base


def spec_with(lines: str) -> str:
    return yaml.safe_dump(
        {**yaml.safe_load(SERVICE), "spec": merged(yaml.safe_load(SERVICE)["spec"], lines)}
    )


def test_the_table_names_every_field_of_a_service():
    from stoker.source.schema_service import ModelServiceSpec  # noqa: PLC0415

    flow = {each.removeprefix("spec.") for each in FLOW - {"spec.dependsOn"}}
    scaling = {f"scaling.{field}" for field in SCALING_CHANGES}
    assert schema_leaves(ModelServiceSpec) == set(SERVICE_CHANGES) | scaling | flow


@pytest.mark.parametrize("field", [f for f, v in SERVICE_CHANGES.items() if v is not None])
def test_changing_a_field_changes_the_service(field):
    """A field that reaches no dataclass could not be obeyed by anybody."""
    value = str(SERVICE_CHANGES[field])
    keys = field.split(".")
    line = value
    for key in reversed(keys):
        line = f"[{{{key}: {line}}}]" if key.endswith("[]") else f"{{{key}: {line}}}"
        line = line.replace("[]: ", ": ")
    if field == "placement.pools[].name":
        line = "{placement: {pools: [{name: h100}]}}"
    if field.startswith("model.tokenSecretRef"):
        pair = {"name": "first", "key": "first", keys[-1]: "other"}
        line = yaml.safe_dump({"model": {"tokenSecretRef": pair}})
    if field.startswith("cache.") and field in BESIDE and field != "cache.type":
        block = yaml.safe_load(BESIDE[field])["cache"]
        line = yaml.safe_dump(
            {**yaml.safe_load(BESIDE[field]), "cache": {**block, keys[-1]: value}}
        )
    if field.startswith("expose.endpointPicker"):
        picker = {keys[-1]: yaml.safe_load(value)}
        line = yaml.safe_dump({"expose": {"inferencePool": "first", "endpointPicker": picker}})
    before = desired_of({"models/q.yaml": spec_with(BESIDE.get(field, ""))})
    after = desired_of({"models/q.yaml": spec_with(AFTER.get(field, line))})

    assert (before.findings, after.findings) == ((), ())
    assert before.units[0].spec != after.units[0].spec
    assert before.units[0].digest != after.units[0].digest


SCALING_CHANGES = {
    "minReplicas": "minReplicas: 2",
    "maxReplicas": "maxReplicas: 9",
    "maxGPUs": "maxGPUs: 8",
    "interval": "interval: 5s",
    "algorithm": "algorithm: Ratio",
    "load.source": "load: {source: other, query: up}",
    "load.query": "load: {source: main, query: down}",
    "load.scrape.metric": "load: {scrape: {metric: n}}",
    "load.scrape.aggregate": "load: {scrape: {metric: m, aggregate: sum}}",
    "load.scrape.source": "load: {scrape: {metric: m, source: epp}}",
    "slo.ttftP95": "slo: {ttftP95: 2s}",
    "slo.itlP95": "slo: {itlP95: 60ms}",
    "metrics[].name": "metrics: [{name: b, scrape: {metric: m}, targetPerReplica: '1'}]",
    "metrics[].scrape.metric": "metrics: [{name: a, scrape: {metric: n}, targetPerReplica: '1'}]",
    "metrics[].scrape.aggregate": "metrics: [{name: a, scrape: {metric: m, aggregate: max}, targetPerReplica: '1'}]",
    "metrics[].scrape.source": "metrics: [{name: a, scrape: {metric: m, source: epp}, targetPerReplica: '1'}]",
    "metrics[].prometheus.source": "metrics: [{name: a, prometheus: {source: main, query: up}, targetPerReplica: '1'}]",
    "metrics[].prometheus.query": "metrics: [{name: a, prometheus: {source: main, query: down}, targetPerReplica: '1'}]",
    "metrics[].decision.source": "metrics: [{name: a, decision: {source: judge, serviceId: x}}]",
    "metrics[].decision.serviceId": "metrics: [{name: a, decision: {source: judge, serviceId: y}}]",
    "metrics[].decision.namespace": "metrics: [{name: a, decision: {source: judge, serviceId: x, namespace: z}}]",
    "metrics[].decision.path": "metrics: [{name: a, decision: {source: judge, serviceId: x, path: /v1}}]",
    "metrics[].targetPerReplica": "metrics: [{name: a, scrape: {metric: m}, targetPerReplica: '2'}]",
    "metrics[].value": "metrics: [{name: a, scrape: {metric: m}, targetPerReplica: '1', value: Total}]",
    "capacity.prefillTokensPerSecond": "capacity: {prefillTokensPerSecond: 2, decodeTokensPerSecond: 1}",
    "capacity.decodeTokensPerSecond": "capacity: {prefillTokensPerSecond: 1, decodeTokensPerSecond: 2}",
    "headroomPercent": "headroomPercent: 10",
    "drainWindow": "drainWindow: 1m",
    "blindFor": "blindFor: 1m",
    "scaleDown.stabilizationWindow": "scaleDown: {stabilizationWindow: 0s}",
    "scaleDown.maxStep": "scaleDown: {maxStep: 1}",
    "scaleDown.behavior": "scaleDown: {behavior: None}",
    "scaleDown.deletionCost.source": "scaleDown: {deletionCost: {source: other, query: up}}",
    "scaleDown.deletionCost.query": "scaleDown: {deletionCost: {source: main, query: down}}",
    "scaleToZero.policy": "scaleToZero: {policy: AfterIdle}",
    "scaleToZero.idle": "scaleToZero: {idle: 1m}",
    "scaleToZero.breachCost": "scaleToZero: {breachCost: '2'}",
    "scaleToZero.wake[].name": "scaleToZero: {wake: [{name: b}]}",
    "scaleToZero.wake[].scrape.source": "scaleToZero: {wake: [{name: a, scrape: {source: y, metric: m}}]}",
    "scaleToZero.wake[].scrape.metric": "scaleToZero: {wake: [{name: a, scrape: {source: x, metric: n}}]}",
    "scaleToZero.wake[].scrape.aggregate": "scaleToZero: {wake: [{name: a, scrape: {source: x, metric: m, aggregate: max}}]}",
    "scaleToZero.wake[].prometheus.source": "scaleToZero: {wake: [{name: a, prometheus: {source: main, query: up}}]}",
    "scaleToZero.wake[].prometheus.query": "scaleToZero: {wake: [{name: a, prometheus: {source: main, query: down}}]}",
    "scaleToZero.wake[].decision.source": "scaleToZero: {wake: [{name: a, decision: {source: main, serviceId: x}}]}",
    "scaleToZero.wake[].decision.serviceId": "scaleToZero: {wake: [{name: a, decision: {source: main, serviceId: y}}]}",
    "scaleToZero.wake[].decision.namespace": "scaleToZero: {wake: [{name: a, decision: {source: main, serviceId: x, namespace: z}}]}",
    "scaleToZero.wake[].decision.path": "scaleToZero: {wake: [{name: a, decision: {source: main, serviceId: x, path: /v1}}]}",
    "scaleToZero.wake[].scheduled": None,
    "scaleToZero.wake[].hold": "scaleToZero: {wake: [{name: a, hold: 1m}]}",
    "scheduled[].name": "scheduled: [{name: b, schedule: 0 8 * * *, duration: 1h, minReplicas: 2}]",
    "scheduled[].schedule": "scheduled: [{name: a, schedule: 0 9 * * *, duration: 1h, minReplicas: 2}]",
    "scheduled[].duration": "scheduled: [{name: a, schedule: 0 8 * * *, duration: 2h, minReplicas: 2}]",
    "scheduled[].timeZone": "scheduled: [{name: a, schedule: 0 8 * * *, duration: 1h, minReplicas: 2, timeZone: Asia/Tokyo}]",
    "scheduled[].minReplicas": "scheduled: [{name: a, schedule: 0 8 * * *, duration: 1h, minReplicas: 3}]",
    "scheduled[].maxReplicas": "scheduled: [{name: a, schedule: 0 8 * * *, duration: 1h, minReplicas: 2, maxReplicas: 9}]",
}  # fmt: skip
"""Every further field of spec.scaling, with a block that differs in it from `scaling_base`; a
wake source's `scheduled` is only checked: the schedule itself wakes (test_scaling.py)."""

SCALING_BASES = {
    "load.scrape": "load: {scrape: {metric: m}}",
    "load": "load: {source: main, query: up}",
    "metrics[].prometheus": "metrics: [{name: a, prometheus: {source: other, query: up}, targetPerReplica: '1'}]",
    "metrics[].decision": "metrics: [{name: a, decision: {source: main, serviceId: x}}]",
    "metrics[]": "metrics: [{name: a, scrape: {metric: m}, targetPerReplica: '1'}]",
    "capacity": "capacity: {prefillTokensPerSecond: 1, decodeTokensPerSecond: 1}",
    "scaleDown.deletionCost": "scaleDown: {deletionCost: {source: main, query: up}}",
    "scaleToZero.wake[].scrape": "scaleToZero: {wake: [{name: a, scrape: {source: x, metric: m}}]}",
    "scaleToZero.wake[].prometheus": "scaleToZero: {wake: [{name: a, prometheus: {source: other, query: up}}]}",
    "scaleToZero.wake[].decision": "scaleToZero: {wake: [{name: a, decision: {source: judge, serviceId: x}}]}",
    "scaleToZero.wake[]": "scaleToZero: {wake: [{name: a}]}",
    "scheduled[]": "scheduled: [{name: a, schedule: 0 8 * * *, duration: 1h, minReplicas: 2}]",
}  # fmt: skip


@pytest.mark.parametrize("field", [f for f, v in SCALING_CHANGES.items() if v is not None])
def test_changing_a_field_of_scaling_changes_what_decide_reads(field):
    """A field that reaches no dataclass could not be obeyed by anybody."""
    base = next((v for k, v in SCALING_BASES.items() if field.startswith(k)), "{}")
    before = {"maxReplicas": 8, **yaml.safe_load(base)}

    after = {**before, **yaml.safe_load(str(SCALING_CHANGES[field]))}

    assert scaling_of(ScalingBlock.model_validate(before)) != scaling_of(
        ScalingBlock.model_validate(after)
    )


FLEET_CHANGES = {
    "cluster.uid": "cluster: {uid: other}",
    "mode": "mode: Correct",
    "pools[].name": "pools: [{name: other}]",
    "pools[].nodeSelector.matchLabels": "pools: [{name: l4, nodeSelector: {matchLabels: {a: b}}}]",
    "pools[].nodeSelector.matchExpressions[].key": "pools: [{name: l4, nodeSelector: {matchExpressions: [{key: a, operator: Exists}]}}]",
    "pools[].nodeSelector.matchExpressions[].operator": "pools: [{name: l4, nodeSelector: {matchExpressions: [{key: a, operator: DoesNotExist}]}}]",
    "pools[].nodeSelector.matchExpressions[].values": "pools: [{name: l4, nodeSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}]",
    "pools[].capacityType": "pools: [{name: l4, capacityType: Spot}]",
    "pools[].pricePerGPUHour": 'pools: [{name: l4, pricePerGPUHour: "0.80"}]',
    "pools[].pin": "pools: [{name: l4, pin: Required}]",
    "prune.mode": "prune: {mode: Never}",
    "prune.maxUnits": "prune: {maxUnits: 3}",
    "ignore[].paths": "ignore: [{paths: [/spec/replicas]}]",
    "ignore[].target.kind": "ignore: [{target: {kind: Deployment}, paths: [/data]}]",
    "ignore[].target.name": "ignore: [{target: {name: x}, paths: [/data]}]",
    "ignore[].target.namespace": "ignore: [{target: {namespace: x}, paths: [/data]}]",
    "ignore[].target.labelSelector": 'ignore: [{target: {labelSelector: "a=b"}, paths: [/data]}]',
    "ignore[].target.annotationSelector": 'ignore: [{target: {annotationSelector: "a"}, paths: [/data]}]',
    "prefetch.maxConcurrent": "prefetch: {maxConcurrent: 3}",
    "templates": "templates: [other]",
    "suspend": "suspend: true",
    "changeWindows[].name": "changeWindows: [{name: a, schedule: 0 9 * * *, duration: 8h}]",
    "changeWindows[].kind": "changeWindows: [{name: a, kind: Deny, schedule: 0 9 * * *, duration: 8h}]",
    "changeWindows[].schedule": "changeWindows: [{name: a, schedule: 1 9 * * *, duration: 8h}]",
    "changeWindows[].duration": "changeWindows: [{name: a, schedule: 0 9 * * *, duration: 9h}]",
    "changeWindows[].timeZone": "changeWindows: [{name: a, schedule: 0 9 * * *, duration: 8h, timeZone: Asia/Tokyo}]",
    "disruption.maxConcurrentMoves": "disruption: {maxConcurrentMoves: 3}",
    "disruption.maxUnavailableGPUs": "disruption: {maxUnavailableGPUs: 10%}",
    "status.branch": "status: {branch: other}",
    "status.flushInterval": "status: {flushInterval: 2m}",
    "status.heartbeat": "status: {heartbeat: 2h}",
    "status.snapshot": "status: {snapshot: None}",
    "deletionPolicy": "deletionPolicy: Delete",
}  # fmt: skip

FLEET_ELSEWHERE = {
    "include",
    "defaults.namespace",
    "defaults.modelService",
    "unitPatches[].target.kind",
    "unitPatches[].target.name",
    "unitPatches[].target.namespace",
    "unitPatches[].patch.spec",
    "timeout",
    "retryInterval",
}
"""Obeyed by source itself: test_source.py, test_defaults_and_patches.py and test_flow.py."""


def test_the_table_names_every_field_of_a_fleet():
    from stoker.source.schema_fleet import FleetSpec  # noqa: PLC0415

    sources = {f"metricSources[].{field}" for field in SOURCE_CHANGES} | set(BUDGET_CHANGES)
    assert schema_leaves(FleetSpec) == set(FLEET_CHANGES) | sources | FLEET_ELSEWHERE


BUDGET_CHANGES = {
    "maxGPUs": "maxGPUs: 8",
    "pools[].maxGPUs": "pools: [{name: l4, maxGPUs: 8}, {name: h100}]",
}


@pytest.mark.parametrize("field", BUDGET_CHANGES)
def test_changing_a_budget_changes_the_fleet(field):
    base = yaml.safe_load(FLEET)
    changed = {**base, "spec": {**base["spec"], **yaml.safe_load(BUDGET_CHANGES[field])}}
    before, after = (
        fleet_from_file(FleetFile.model_validate(each), SourceLocation(), ())
        for each in (base, changed)
    )

    assert before != after


SOURCE = {"name": "a", "prometheus": {"url": "http://x"}}
SOURCE_CHANGES = {
    "name": {**SOURCE, "name": "b"},
    "prometheus.url": {"name": "a", "prometheus": {"url": "http://y"}},
    "prometheus.headersFrom[].secretRef.name": {
        "name": "a",
        "prometheus": {"url": "http://x", "headersFrom": [{"secretRef": {"name": "s"}}]},
    },
    "decision.url": {"name": "a", "decision": {"url": "http://x"}},
    "scrape.url": {"name": "a", "scrape": {"url": "http://x"}},
    "decision.headersFrom[].secretRef.name": {
        "name": "a",
        "decision": {"url": "http://x", "headersFrom": [{"secretRef": {"name": "s"}}]},
    },
}
"""Every field of a metric source, each with a source that differs in it from SOURCE."""


@pytest.mark.parametrize("field", SOURCE_CHANGES)
def test_changing_a_field_of_a_source_changes_whom_signals_asks(field):
    before, after = (
        sources_of([MetricSourceBlock.model_validate(block)])
        for block in (SOURCE, SOURCE_CHANGES[field])
    )

    assert before != after


@pytest.mark.parametrize("field", FLEET_CHANGES)
def test_changing_a_field_changes_the_fleet(field):
    base = yaml.safe_load(FLEET)
    base["spec"] |= yaml.safe_load(FLEET_CHANGES[field])
    before = read_fleet("fleet.yaml", FLEET.encode()).fleet

    after = read_fleet("fleet.yaml", yaml.safe_dump(base).encode()).fleet

    assert before != after


def test_a_bundle_takes_manifests_or_jinja():
    files = {"models/base.yaml": BUNDLE, "models/a.yaml": "kind: ConfigMap\n"}
    jinja = BUNDLE.replace('manifests: ["*.yaml"]', "jinja: {paths: [a.j2], values: {size: 0.5}}")

    plain = desired_of({"fleet.yaml": FLEET.replace("*.yaml", "base.yaml"), **files})
    templated = desired_of({"models/base.yaml": jinja, "models/a.j2": ""})

    assert plain.units[0].spec != templated.units[0].spec
    assert plain.findings == templated.findings == ()
