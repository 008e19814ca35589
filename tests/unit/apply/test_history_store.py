"""What decide learned survives the process, and losing it is no fault."""

from dataclasses import replace

from stoker.apply import HistoryStore
from stoker.kube.client import Client
from stoker.kube.memory import MemoryServer
from stoker.kube.transport import Response
from stoker.model.blame import BadNode, Failures
from stoker.model.history import History, UnitHistory
from stoker.model.refs import UnitRef
from stoker.model.start_samples import Starts, StartSample
from stoker.sim.clock import VirtualClock

QWEN = UnitRef("ModelService", "llm", "qwen-7b")
STARTS = Starts.bounded({"a1": [StartSample(5_000, 1, 2, 3)]}, ())
LEARNED = History(((QWEN, UnitHistory(wanted=3)),))


def a_store(server: MemoryServer) -> HistoryStore:
    return HistoryStore(Client(server), "f00dcafe", namespace="default")


def test_a_fresh_process_reads_what_the_last_one_saved():
    """Windows and wanted counts go on through a restart."""
    server = MemoryServer(VirtualClock())
    first = a_store(server)
    first.read()
    saved = first.save(LEARNED)

    assert saved
    assert LEARNED == a_store(server).read()


def test_an_unchanged_history_costs_no_request():
    """A steady fleet writes nothing."""
    server = MemoryServer(VirtualClock())
    store = a_store(server)
    store.read()
    store.save(LEARNED)
    before = server.resource_version
    asked = len(server.audit)
    store.save(LEARNED)

    assert before == server.resource_version
    assert asked == len(server.audit)


def test_an_entry_that_is_no_history_counts_as_lost():
    """Unknown is not zero: a damaged entry is left out, never read as a count."""
    server = MemoryServer(VirtualClock())
    store = a_store(server)
    store.read()
    store.save(LEARNED)
    client = Client(server)
    live = next(m for m in client.list("", "ConfigMap", "default").items)
    live["data"] = {"ModelService.llm.qwen-7b": "not json"}
    client.update(live, manager="someone")

    assert History() == a_store(server).read()


def test_a_missing_namespace_fails_softly():
    """History is no reason to stop a pass."""
    store = HistoryStore(Client(MemoryServer(VirtualClock())), "f00d", namespace="nowhere")
    store.read()

    assert not store.save(LEARNED)


def test_the_adopted_commit_and_done_jobs_stand_beside_the_history():
    server = MemoryServer(VirtualClock())
    first = a_store(server)
    first.read()
    first.save(LEARNED, "9be0a17", {"Bundle/llm/work llm/once": "d1"})

    second = a_store(server)

    assert LEARNED == second.read()
    assert "9be0a17" == second.adopted
    assert {"Bundle/llm/work llm/once": "d1"} == second.read_jobs()


def test_jobs_are_read_where_nothing_was_read_before():
    """Commands that look read the history only for the sake of a Job."""
    server = MemoryServer(VirtualClock())
    first = a_store(server)
    first.save(LEARNED, "", {"key": "d1"})

    assert {"key": "d1"} == a_store(server).read_jobs()
    assert {} == a_store(MemoryServer(VirtualClock())).read_jobs()


def test_what_starts_took_outlives_the_process_and_a_damaged_copy_is_lost():
    server = MemoryServer(VirtualClock())
    first = a_store(server)
    first.read()
    first.save(replace(LEARNED, starts=STARTS))

    assert replace(LEARNED, starts=STARTS) == a_store(server).read()
    assert History(starts=STARTS) == a_store(server).read_starts()

    live = next(m for m in Client(server).list("", "ConfigMap", "default").items)
    live["data"]["starts"] = "{"
    Client(server).update(live, manager="someone")
    assert LEARNED == a_store(server).read()


def test_who_looks_on_knows_which_starts_failed_but_not_the_counts():
    """A plan must not promise a node that the controller leaves out."""
    server = MemoryServer(VirtualClock())
    failures = Failures((BadNode("uid-1", 1, 2, 1, 3, "CrashLoopBackOff"),), rev="aaaaaaaa")
    first = a_store(server)
    first.read()
    first.save(History(((QWEN, UnitHistory(wanted=3, failures=failures)),)))

    assert History(((QWEN, UnitHistory(failures=failures)),)) == a_store(server).read_starts()


def test_who_may_not_read_the_history_has_priors_and_no_error():
    """`stoker plan` of a person without rights on the state namespace."""

    class Forbidding(MemoryServer):
        def send(self, request):
            if "/configmaps/" in request.path:
                headers = (("content-type", "application/json"),)
                return Response(403, b'{"reason": "Forbidden", "message": "no"}', headers)
            return super().send(request)

    assert History() == a_store(Forbidding(VirtualClock())).read_starts()
