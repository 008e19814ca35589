from __future__ import annotations

import pytest

from stoker.model.fleet import (
    Cache,
    CacheType,
    CudaGraphs,
    Drain,
    ModelService,
    PlacementMode,
    SecretKey,
)
from stoker.model.inference_pool import InferencePool
from stoker.model.scaling import ScalingMode
from unit.source.source_builders import (
    FLEET,
    REVISION,
    SERVICE,
    codes,
    desired_of,
    service_of,
    with_spec,
)


def test_defaults_are_those_of_the_design():
    assert service_of().spec == ModelService(
        model_uri="hf://Qwen/Qwen2.5-7B",
        model_revision=REVISION,
        served_names=("qwen",),
        engine_image="registry.example/vllm:1",
        gpu_count=1,
        replicas=1,
        pools=("l4", "h100"),
    )


def test_everything_said_is_taken():
    service = service_of(
        """\
        replicas: 0
        resources: {requests: {cpu: 16, memory: 160Gi}, shm: 16Gi}
        placement: {mode: Scheduler, pools: [{name: h100}], whenFull: Hold}
        cache: {type: HostPath, path: /mnt/nvme}
        coldStart: {deadline: 20m}
        drain: {endpointSync: 5s, max: 1h, shutdown: 500ms}
        disruption: {minReady: 0, maxConcurrentMoves: 2}
        expose: {service: {port: 80}}
        render: {template: mine/v2}
        podTemplate: {spec: {tolerations: [{operator: Exists}], nodeName: null}}
        """
    ).spec

    assert isinstance(service, ModelService)
    assert service.replicas == 0
    assert (service.cpu_request, service.memory_request) == ("16", "160Gi")
    assert service.shm_bytes == 16 * 2**30
    assert service.placement_mode is PlacementMode.SCHEDULER
    assert service.pools == ("h100",)
    assert service.cache == Cache(CacheType.HOST_PATH, path="/mnt/nvme")
    assert service.cold_start_deadline_ms == 1_200_000
    assert service.drain == Drain(5000, 3_600_000, 500)
    assert (service.min_ready, service.max_concurrent_moves) == (0, 2)
    assert service.service_port == 80
    assert service.template == "mine/v2"
    assert service.pod_template == {
        "spec": {"tolerations": [{"operator": "Exists"}], "nodeName": None}
    }


def test_model_and_engine_are_taken():
    text = SERVICE.replace(
        "engine: {", 'engine: {version: "0.28", args: ["--x", "1"], cudaGraphs: Capture, '
    ).replace(
        "uri: hf", "size: 15Gi, servedNames: [a, b], tokenSecretRef: {name: s, key: k}, uri: hf"
    )

    service = desired_of({"models/q.yaml": text}).units[0].spec

    assert isinstance(service, ModelService)
    assert service.model_size_bytes == 15 * 2**30
    assert service.served_names == ("a", "b")
    assert service.token_secret == SecretKey("s", "k")
    assert (service.engine_version, service.engine_args) == ("0.28", ("--x", "1"))
    assert service.cuda_graphs is CudaGraphs.CAPTURE


def test_external_scaling_leaves_the_count_to_others():
    service = service_of("scaling: {mode: External}").spec

    assert isinstance(service, ModelService)
    assert service.scaling_mode is ScalingMode.EXTERNAL
    assert service.replicas is None


@pytest.mark.parametrize(
    ("gpus", "block", "expected"),
    [
        (4, "", (4, 1)),
        (4, "parallelism: {tensor: 2, pipeline: 2}", (2, 2)),
        (4, "parallelism: {tensor: 4, nodes: 1}", (4, 1)),
        (4, "parallelism: {pipeline: 2}", (2, 2)),
        (4, "parallelism: {nodes: 1}", (4, 1)),
        (4, "parallelism: {nodes: 2}", (4, 2)),
        (4, "parallelism: {nodes: 2, tensor: 8}", (8, 1)),
        (4, "parallelism: {nodes: 2, pipeline: 4}", (2, 4)),
    ],
)
def test_parallelism_fits_the_gpus(gpus, block, expected):
    text = with_spec(block, SERVICE.replace("count: 1", f"count: {gpus}"))

    service = desired_of({"models/q.yaml": text}).units[0].spec

    assert isinstance(service, ModelService)
    assert expected == (service.tensor_parallel, service.pipeline_parallel)


@pytest.mark.parametrize(
    ("lines", "code", "field"),
    [
        ("replicas: 2\nscaling: {mode: External}", "replicas-and-scaling", "spec.replicas"),
        ("parallelism: {tensor: 2}", "parallelism-mismatch", "spec.parallelism"),
        ("parallelism: {pipeline: 2}", "parallelism-mismatch", "spec.parallelism"),
        ("parallelism: {tensor: 1, nodes: 2}", "parallelism-mismatch", "spec.parallelism"),
        ("parallelism: {tensor: 0}", "invalid-value", "spec.parallelism.tensor"),
        ("parallelism: {nodes: 65}", "invalid-value", "spec.parallelism.nodes"),
        ("placement: {groupTopology: {key: rack}}", "groups-unfit", "spec.placement.groupTopology"),
        (
            "parallelism: {nodes: 2}\nplacement: {mode: Scheduler}\nadopt: {name: x}",
            "groups-unfit",
            "spec.adopt",
        ),
        (
            "parallelism: {nodes: 2}\nplacement: {whenFull: Unpinned}",
            "groups-unfit",
            "spec.placement.whenFull",
        ),
        (
            "parallelism: {nodes: 2}\nplacement: {reclaim: LowerPriority}",
            "groups-unfit",
            "spec.placement.reclaim",
        ),
        (
            "parallelism: {nodes: 2}\ncache: {prefetch: {nodes: 1}}",
            "groups-unfit",
            "spec.cache.prefetch.nodes",
        ),
        ("replicas: -1", "invalid-value", "spec.replicas"),
        ('replicas: "2"', "invalid-type", "spec.replicas"),
        ("replicas: true", "invalid-type", "spec.replicas"),
        ("replicas: 1.5", "invalid-type", "spec.replicas"),
        ("placement: {pools: [{name: l5}]}", "unknown-pool", "spec.placement.pools[0].name"),
        ("placement: {pools: [{name: l4}, {name: l4}]}", "duplicate-pool", "spec.placement.pools[1].name"),
        ("placement: {mode: Anywhere}", "invalid-value", "spec.placement.mode"),
        ("placement: {order: Fastest}", "invalid-value", "spec.placement.order"),
        ("placement: {mode: Scheduler, order: Spread}", "invalid-value", "spec.placement.order"),
        ("placement: {mode: Scheduler, pools: [{name: l4, base: 1}]}", "invalid-value", "spec.placement.pools[0].base"),
        ("placement: {mode: Scheduler, spot: {maxPercent: 1}}", "invalid-value", "spec.placement.spot"),
        ("placement: {mode: Scheduler, topologySpread: {key: a}}", "invalid-value", "spec.placement.topologySpread"),
        ("placement: {mode: Scheduler, reclaim: LowerPriority}", "invalid-value", "spec.placement.reclaim"),
        ("placement: {reclaim: Always}", "invalid-value", "spec.placement.reclaim"),
        ("priority: high", "invalid-type", "spec.priority"),
        ("placement: {spot: {maxPercent: 101}}", "invalid-value", "spec.placement.spot.maxPercent"),
        ("placement: {spot: {maxPercent: 50%}}", "invalid-type", "spec.placement.spot.maxPercent"),
        ("placement: {topologySpread: {maxSkew: 1}}", "field-missing", "spec.placement.topologySpread.key"),
        ("placement: {topologySpread: {key: a/b/c}}", "invalid-value", "spec.placement.topologySpread.key"),
        ("placement: {topologySpread: {key: a, maxSkew: 0}}", "invalid-value", "spec.placement.topologySpread.maxSkew"),
        ("placement: {signalMaxAge: 5}", "invalid-type", "spec.placement.signalMaxAge"),
        ("cache: {type: HostPath}", "field-missing", "spec.cache.path"),
        ("cache: {type: PVC}", "field-missing", "spec.cache.claim"),
        ("cache: {path: /x}", "invalid-value", "spec.cache.path"),
        ("cache: {type: Stream}", "invalid-value", "spec.cache.type"),
        ("cache: {type: Image}", "invalid-value", "spec.cache.type"),
        ("cache: {type: HostPath, path: /x, image: i}", "invalid-value", "spec.cache.image"),
        ("cache: {maxSize: 8Gi}", "invalid-value", "spec.cache.maxSize"),
        ("cache: {type: PVC, claim: c, rootDisk: Allow}", "invalid-value", "spec.cache.rootDisk"),
        ("cache: {prefetch: {nodes: -1}}", "invalid-value", "spec.cache.prefetch.nodes"),
        ("placement: {mode: Scheduler}\ncache: {prefetch: {nodes: 1}}", "invalid-value", "spec.cache.prefetch.nodes"),
        ("cache: {type: PVC, claim: c, path: /x}", "invalid-value", "spec.cache.path"),
        ("cache: {type: HostPath, path: x}", "invalid-value", "spec.cache.path"),
        ("coldStart: {deadline: 20}", "invalid-type", "spec.coldStart.deadline"),
        ("coldStart: {deadline: 1.5h}", "invalid-duration", "spec.coldStart.deadline"),
        ("coldStart: {deadline: 5ms}", "invalid-value", "spec.coldStart.deadline"),
        ("resources: {shm: lots}", "invalid-quantity", "spec.resources.shm"),
        ("resources: {shm: -1Gi}", "invalid-quantity", "spec.resources.shm"),
        ("resources: {requests: {cpu: [1]}}", "invalid-type", "spec.resources.requests.cpu"),
        ("resources: {limits: {cpu: 1}}", "unknown-field", "spec.resources.limits"),
        ("disruption: {minReady: -1}", "invalid-value", "spec.disruption.minReady"),
        ("expose: {service: {port: 70000}}", "invalid-value", "spec.expose.service.port"),
        ("render: {template: ../x}", "invalid-value", "spec.render.template"),
        ("podTemplate: {template: {}}", "unknown-field", "spec.podTemplate.template"),
        ("podTemplate: []", "invalid-type", "spec.podTemplate"),
        ("replcas: 2", "unknown-field", "spec.replcas"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_one_finding_at_its_line(lines, code, field):
    desired = desired_of({"models/q.yaml": with_spec(lines)})

    assert [(code, field)] == [(f.code, f.field) for f in desired.findings]
    assert desired.findings[0].location.path == "models/q.yaml"
    assert desired.findings[0].location.line >= 8
    assert desired.findings[0].unit == "ModelService/llm/qwen"
    assert [str(ref) for ref in desired.broken] == ["ModelService/llm/qwen"]
    assert desired.unit_set_known


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("Qwen/Qwen2.5-7B", "invalid-model-uri"),
        ("hf:/Qwen/x", "invalid-model-uri"),
        ('"://x"', "invalid-model-uri"),
        ("hf://", "invalid-model-uri"),
        ("hf://a/b/c", "invalid-model-uri"),
        ("hf://a b", "invalid-model-uri"),
        ('""', "invalid-model-uri"),
    ],
)
def test_a_malformed_model_reference_is_one_plain_line(uri, code):
    """cases.md row 145: no unpack error, one usage error."""
    desired = desired_of({"models/q.yaml": SERVICE.replace("hf://Qwen/Qwen2.5-7B", uri)})

    assert [(code, "spec.model.uri")] == [(f.code, f.field) for f in desired.findings]
    assert "\n" not in str(desired.findings[0])


def test_a_bare_reference_is_guessed():
    """cases.md row 145."""
    desired = desired_of({"models/q.yaml": SERVICE.replace("hf://", "")})

    assert str(desired.findings[0]) == (
        "models/q.yaml:5:11: spec.model.uri: 'Qwen/Qwen2.5-7B' needs a scheme, as in "
        "hf://organisation/name [invalid-model-uri] (did you mean hf://Qwen/Qwen2.5-7B?)"
    )


@pytest.mark.parametrize("revision", ["main", "7ae5576", REVISION.upper()])
def test_weights_are_pinned_by_commit(revision):
    desired = desired_of({"models/q.yaml": SERVICE.replace(REVISION, revision)})

    assert codes(desired) == ["invalid-model-revision"]


def test_other_schemes_take_any_revision():
    text = SERVICE.replace("hf://Qwen/Qwen2.5-7B", "s3://bucket/qwen").replace(REVISION, "v1")

    assert codes(desired_of({"models/q.yaml": text})) == []


def test_a_fleet_without_pools_places_nothing_by_node():
    fleet = FLEET.replace("  pools: [{name: l4}, {name: h100}]\n", "")
    files = {"fleet.yaml": fleet, "models/q.yaml": SERVICE}

    assert codes(desired_of(files)) == ["pools-missing"]
    files["models/q.yaml"] = with_spec("placement: {mode: Scheduler}")
    assert codes(desired_of(files)) == []


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("replcas: 2", "did you mean replicas?"),
        ("Replicas: 2", "did you mean replicas?"),
        ("colDstart: {}", "did you mean coldStart?"),
        ("placement: {pool: []}", "did you mean pools?"),
        ("placement: {mode: nodes}", "did you mean Nodes?"),
        ("placement: {pools: [{name: h10}]}", "did you mean h100?"),
        ("prioritty: 1", "did you mean priority?"),
        ("xyz: 1", ""),
    ],
)
def test_suggestions(wrong, hint):
    desired = desired_of({"models/q.yaml": with_spec(wrong)})

    assert hint == desired.findings[0].hint


def test_numbers_where_text_is_wanted_are_told_how_to_write_it():
    text = SERVICE.replace("engine: {", "engine: {version: 0.28, args: [8192, true], ")

    found = {f.field: f.hint or f.message for f in desired_of({"models/q.yaml": text}).findings}

    assert 'for instance "0.28"' in found["spec.engine.version"]
    assert found["spec.engine.args[0]"] == 'write "8192"'
    assert found["spec.engine.args[1]"] == 'write "true"'


def test_a_fault_of_yaml_is_not_told_twice():
    """`010` is refused as ambiguous; that it is no number then goes without saying."""
    desired = desired_of({"models/q.yaml": with_spec("replicas: 010")})

    assert codes(desired) == ["ambiguous-scalar"]
    assert [str(ref) for ref in desired.broken] == ["ModelService/llm/qwen"]


def test_fields_know_their_lines():
    unit = service_of("replicas: 2\nplacement:\n  pools:\n  - name: l4")

    assert unit.line_of("spec.replicas").line == 8
    assert unit.line_of("spec.placement.pools[0].name").line == 11
    assert unit.line_of("spec.placement.whenFull").line == 9
    assert unit.location.line == 1


def test_an_adopted_workload_keeps_its_own_service():
    """Decision note 19: what is not rendered is refused, never ignored."""
    adopting = "placement: {mode: Scheduler}\nadopt: {name: vllm}\n"
    text = with_spec(f"{adopting}expose: {{service: {{port: 80}}}}\n")
    desired = desired_of({"models/qwen.yaml": text})

    (finding,) = desired.findings
    assert "adopt-keeps-service" == finding.code
    assert "expose" in finding.field
    assert "expose: null" in finding.hint
    assert 0 < finding.location.line


def test_defaults_that_expose_are_taken_away_for_an_adopted_service():
    adopting = "placement: {mode: Scheduler}\nadopt: {name: vllm}\nexpose: null\n"
    exposed = "{namespace: llm, modelService: {expose: {service: {port: 80}}}}"

    assert "qwen" == service_of(adopting, FLEET.replace("{namespace: llm}", exposed)).ref.name


def test_an_inference_pool_has_the_picker_that_charts_give_it_unless_told_otherwise():
    """The Gateway API's own chart calls the Service <pool>-epp, port 9002."""
    plain = service_of("expose: {inferencePool: llama}\n").spec
    told = service_of(
        "expose: {inferencePool: llama, endpointPicker: {service: p, port: 1, failureMode: FailOpen}}\n"
    ).spec

    assert isinstance(plain, ModelService)
    assert isinstance(told, ModelService)
    assert InferencePool("llama", "llama-epp", 9002, "FailClose") == plain.inference_pool
    assert InferencePool("llama", "p", 1, "FailOpen") == told.inference_pool


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("expose: {endpointPicker: {port: 9003}}", "picker-needs-pool"),
        ("expose: {inferencePool: Llama_70B}", "invalid-value"),
        ("expose: {inferencePool: llama, endpointPicker: {failureMode: Open}}", "invalid-value"),
        ("expose: {inferencePool: llama, endpointPicker: {port: 0}}", "invalid-value"),
    ],
)
def test_a_pool_that_cannot_be_is_refused(line, code):
    assert [code] == codes(desired_of({"models/qwen.yaml": with_spec(line + "\n")}))
