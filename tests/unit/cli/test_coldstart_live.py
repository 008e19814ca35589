"""Which pod is meant by a name, and what happens where events or log are out of reach."""

from __future__ import annotations

import pytest

from stoker.cli.coldstart_live import live_start, read_live_start
from stoker.errors import Stalled
from stoker.kube.client import Client
from stoker.kube.memory import MemoryServer
from stoker.kube.transport import Response
from stoker.model.refs import ObjectRef
from stoker.objects.names import SERVICE_LABEL
from stoker.objects.start_phases import Phase
from stoker.sim.clock import VirtualClock
from stoker.source import shipped_log_profiles


class WithLogs:
    """The in-memory API server, and logs of containers beside it; events may be forbidden."""

    url = "memory"

    def __init__(self, logs, *, events=True):
        self.clock = VirtualClock()
        self.inner = MemoryServer(self.clock)
        self.logs = logs
        self.events = events
        self.asked = []

    def send(self, request):
        self.asked.append((request.path, dict(request.query)))
        if request.path.endswith("/log"):
            container = dict(request.query)["container"]
            if container not in self.logs:
                return Response(400, b'{"message": "container is waiting to start"}',
                                (("content-type", "application/json"),))  # fmt: skip
            return Response(200, self.logs[container].encode())
        if request.path.endswith("/events") and request.method == "GET" and not self.events:
            return Response(403, b'{"reason": "Forbidden", "message": "no events for you"}',
                            (("content-type", "application/json"),))  # fmt: skip
        return self.inner.send(request)

    def stream(self, request):
        return self.inner.stream(request)

    def close(self):
        return None


def cluster(*pods, logs=None, **more):
    """A server with these pods: name, service, and namespace llm if not told."""
    transport = WithLogs(logs if logs is not None else {"engine": "2026-09-17T10:00:00Z up\n"}, **more)  # fmt: skip
    client = Client(transport)
    for namespace in ("llm", "other"):
        client.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, manager="t"
        )
    for name, service, namespace in pods:
        client.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "labels": {SERVICE_LABEL: service} if service else {},
                },
                "spec": {
                    "containers": [
                        {"name": "proxy", "image": "p:1"},
                        {"name": "engine", "image": "vllm/vllm-openai:v0.28.0"},
                    ]
                },
            },
            manager="t",
        )
        transport.clock.wait(5)
    return client, transport


def name_of(found):
    return found.start.pod["metadata"]["name"]


def test_a_service_means_its_newest_pod_and_names_the_others():
    client, _ = cluster(("a", "qwen", "llm"), ("b", "qwen", "llm"), ("c", "embed", "llm"))
    found = read_live_start(client, "qwen")

    assert (name_of(found), found.others) == ("b", ("a",))
    assert found.unread == ()


def test_the_log_of_the_engine_is_read_with_instants_and_a_limit():
    client, transport = cluster(("a", "qwen", "llm"))
    found = read_live_start(client, "llm/qwen")
    path, query = next(each for each in transport.asked if each[0].endswith("/log"))

    assert found.start.log == ("2026-09-17T10:00:00Z up",)
    assert path == "/api/v1/namespaces/llm/pods/a/log"
    assert query["container"] == "engine"
    assert query["timestamps"] == "true"
    assert int(query["limitBytes"]) > 0


@pytest.mark.parametrize(("name", "namespace"), [("x", ""), ("x", "llm"), ("llm/x", "")])
def test_a_pod_is_found_by_its_name(name, namespace):
    client, _ = cluster(("x", "", "llm"))

    assert name_of(read_live_start(client, name, namespace)) == "x"


def test_a_name_that_nobody_has_is_wrong_use():
    client, _ = cluster(("x", "qwen", "llm"))

    for name, namespace in (("y", ""), ("x", "other")):
        with pytest.raises(Stalled, match=f"no service and no pod '{name}'") as told:
            read_live_start(client, name, namespace)
        assert told.value.code == "no-such-pod"


def test_what_is_out_of_reach_is_told_and_the_rest_is_used():
    """A person may read pods and no events; a container that waits has no log yet."""
    client, _ = cluster(("x", "qwen", "llm"), logs={}, events=False)
    found = read_live_start(client, "qwen")

    assert name_of(found) == "x"
    assert (found.start.events, found.start.log) == ((), ())
    assert ["events", "log"] == [each.partition(":")[0] for each in found.unread]


def test_only_events_of_that_pod_are_taken():
    client, _ = cluster(("x", "qwen", "llm"))
    uid = client.list("", "Pod", "llm").items[0]["metadata"]["uid"]
    for number, (name, of) in enumerate((("x", uid), ("x", "an-earlier-pod"), ("y", "u"))):
        about = {"kind": "Pod", "namespace": "llm", "name": name, "uid": of}
        client.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"e{number}", "namespace": "llm"},
                "involvedObject": about,
                "reason": "Scheduled",
            },
            manager="t",
        )
    found = read_live_start(client, "qwen")

    assert [each["metadata"]["name"] for each in found.start.events] == ["e0"]


def test_a_start_in_the_cluster_is_told_phase_by_phase():
    """Pod, event and log together; an older pod and what is out of reach are told beside."""
    line = "2026-09-17T10:01:00Z INFO:     Application startup complete.\n"
    client, transport = cluster(("a", "qwen", "llm"), ("b", "qwen", "llm"), logs={"engine": line})
    began = {"running": {"startedAt": "2026-09-17T10:00:00Z"}}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-09-17T10:01:02Z"}
    status = {
        "conditions": [ready],
        "containerStatuses": [
            {"name": "engine", "restartCount": 0, "ready": True, "image": "x", "imageID": "x",
             "state": began}
        ],
    }  # fmt: skip
    ref = ObjectRef("", "Pod", "llm", "b")
    client.patch(ref, "merge", {"status": status}, manager="kubelet", subresource="status")
    start, notes = live_start(client, "qwen", "", shipped_log_profiles())
    known = {span.phases[-1]: span.took_ms for span in start.spans}

    assert start.ready
    assert (known[Phase.ENGINE_INIT], known[Phase.PROBE]) == (60_000, 2_000)
    assert notes == ("1 older pods of it: a",)

    transport.events = False
    _, notes = live_start(client, "llm/b", "", shipped_log_profiles())
    assert [note.partition(":")[0] for note in notes] == ["not read"]
