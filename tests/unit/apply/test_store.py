"""The inventory in the cluster."""

import contextlib

import pytest

from stoker.apply import InventoryStore
from stoker.apply import store as store_module
from stoker.errors import Retryable, Stalled, Unreachable
from stoker.model.outcome import Result
from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects import names
from stoker.objects.inventory import Inventory
from stoker.objects.inventory_shards import shards_from_entries
from unit.apply.apply_world import World, outcomes, results
from unit.diff.diff_builders import FLEET_ID, A, B, config, desired, rendered

SETS = (rendered(A, config()),)


@pytest.fixture
def world():
    return World()


def maps(world):
    items = world.cluster.list("", "ConfigMap", "stoker-system").items
    return {item["metadata"]["name"]: item for item in items}


def test_the_inventory_is_readable_with_kubectl(world):
    world.run(*SETS)
    found = maps(world)

    assert set(found) == {"stoker-f1", "stoker-f1-0-of-1"}
    assert found["stoker-f1"]["data"]["fleet"] == "prod"
    assert all(m["metadata"]["labels"]["stoker.dev/inventory"] == "f1" for m in found.values())
    uid = world.get(config())["metadata"]["uid"]
    assert found["stoker-f1-0-of-1"]["data"]["entries"] == (
        f'{{"objects":[["v1","ConfigMap","llm","c","{uid}"]],"unit":["Bundle","llm","a"]}}\n'
    )


def test_the_union_is_written_before_anything_is_made(world):
    """a.4 P4: the set is a superset at every instant."""
    seen = []
    world.server.before = lambda request: seen.append((request.method, request.path))
    world.run(*SETS)
    union = next(i for i, (m, p) in enumerate(seen) if m == "POST" and p.endswith("configmaps"))
    made = next(i for i, (m, p) in enumerate(seen) if m == "PATCH" and p.endswith("/c"))

    assert union < made


def test_a_pass_that_adds_no_name_writes_no_inventory(world):
    world.run(*SETS)
    before = maps(world)
    world.run(rendered(A, config(data={"a": "2"})))

    assert maps(world) == before


def test_reading_costs_one_request_per_process(world):
    world.run(*SETS)
    world.restart()
    mark = world.mark
    store = InventoryStore(world.cluster, FLEET_ID)
    store.read("prod", world.live())
    store.read("prod", world.live())
    reads = [e for e in world.server.audit[mark:] if "stoker-system" in e.path]

    assert len(reads) == 1


def test_a_stale_leader_stops_at_its_first_union(world):
    """c.2 row 52: it has not seen the other's write, so nothing of it is applied."""
    world.run(*SETS)
    stale = world.twin()
    stale.store.read("prod", world.live())
    world.run(*SETS, rendered(B, config("b")))

    with pytest.raises(Retryable) as caught:
        stale.run(
            *SETS, rendered(B, config("b")), rendered(UnitRef("Bundle", "llm", "z"), config("z"))
        )
    assert caught.value.code == "conflict"
    assert not world.has(config("z"))


def test_what_another_controller_wrote_is_seen_in_the_next_pass(world):
    """`stoker apply` beside a running controller: one GET a pass tells."""
    world.run(*SETS)
    other = world.twin()
    other.run(*SETS, rendered(B, config("b")))
    mark = world.mark
    world.store.stored()
    outcome = world.run(*SETS)

    assert results(outcome)["b"] == "deleted"
    world.store.stored()
    mark = world.mark
    world.store.stored()
    reads = [e.path.rpartition("/")[2] for e in world.server.audit[mark:]]
    assert reads == ["stoker-f1"]


def test_while_nobody_else_can_write_no_pass_asks(world):
    world.run(*SETS)
    world.store.stored()
    world.store.is_alone = lambda: True
    mark = world.mark
    known = world.store.stored()

    assert [] == list(world.server.audit[mark:])
    assert known == world.store.current


@pytest.mark.parametrize("part", ["stoker-f1", "stoker-f1-0-of-1"])
def test_a_part_that_somebody_deletes_is_made_again(world, part):
    world.run(*SETS)
    world.cluster.delete(ObjectRef("", "ConfigMap", "stoker-system", part))

    with pytest.raises(Retryable) as caught:
        world.run(*SETS, rendered(B, config("b")))
    assert caught.value.code == "conflict"
    outcome = world.run(*SETS, rendered(B, config("b")))
    assert outcome.units[1].applied
    assert set(world.stored()) == {("a", "c"), ("b", "b")}


def test_a_deleted_inventory_is_noticed_before_anything_is_pruned(world):
    world.run(*SETS, rendered(B, config("b")))
    for name in ("stoker-f1", "stoker-f1-0-of-1"):
        world.cluster.delete(ObjectRef("", "ConfigMap", "stoker-system", name))
    assert world.store.stored() is None
    outcome = world.run(*SETS)

    assert outcome.prune_hold
    assert world.has(config("b"))


def test_two_first_writers_do_not_both_win(world):
    one, two = (InventoryStore(world.cluster, FLEET_ID) for _ in range(2))
    for store in (one, two):
        store.read("prod", world.live())
    entry = [(A, ObjectRef("", "ConfigMap", "llm", "c"), "")]
    one.write(one.current.union(entry))

    with pytest.raises(Retryable):
        two.write(two.current.union(entry))


def test_a_lost_inventory_is_rebuilt_from_marks_and_prunes_nothing(world):
    """Design section 6: a lost inventory prunes nothing in that pass."""
    world.run(*SETS, rendered(B, config("b")))
    world.forget_inventory()
    first = world.run(*SETS)

    assert outcomes(first)["b"].result is Result.KEPT
    assert "inventory was lost" in first.prune_hold
    assert set(world.stored()) == {("a", "c"), ("b", "b")}
    second = world.run(*SETS)
    assert results(second)["b"] == "deleted"


def test_a_mark_that_somebody_typed_proves_nothing_to_a_rebuilt_inventory(world):
    """A first start has no inventory either: it must not take what is theirs, and prune it."""
    world.run(*SETS)
    ref = ObjectRef("", "ConfigMap", "llm", "theirs")
    theirs = config("theirs", annotations={names.OWNER: names.owner_mark(FLEET_ID, B, ref)})
    world.cluster.create(theirs, manager="kubectl-create")
    world.forget_inventory()
    world.run(*SETS)
    world.run(*SETS)

    assert world.has(theirs)
    assert set(world.stored()) == {("a", "c")}


def test_a_fresh_fleet_is_not_a_lost_one(world):
    world.run(*SETS)

    assert not InventoryStore(world.cluster, "f2").read("other", world.live()).rebuilt


@pytest.mark.parametrize("damage", ["shard", "text", "parent"])
def test_a_damaged_inventory_is_a_lost_one(world, damage):
    world.run(*SETS, rendered(B, config("b")))
    name = "stoker-f1" if damage == "parent" else "stoker-f1-0-of-1"
    ref = ObjectRef("", "ConfigMap", "stoker-system", name)
    if damage == "text":
        world.cluster.patch(ref, "merge", {"data": {"entries": "nonsense"}}, manager="ed")
    else:
        world.cluster.delete(ref)
    world.restart()
    outcome = world.run(*SETS)

    assert outcome.prune_hold
    assert world.has(config("b"))
    assert set(world.stored()) == {("a", "c"), ("b", "b")}


def test_objects_that_no_mark_tells_of_are_found_in_what_is_left_of_the_shards(world):
    """The parent is gone: its shards still name objects that caches do not show."""
    world.run(*SETS)
    world.cluster.delete(ObjectRef("", "ConfigMap", "stoker-system", "stoker-f1"))
    world.restart()
    found = world.store.read("prod", world.live())

    assert found.rebuilt
    assert found.units == (A,)


def test_another_fleet_name_stalls(world):
    """a.4 P1: A changed name is an error, nothing is deleted."""
    world.run(*SETS)
    world.restart()

    with pytest.raises(Stalled) as caught:
        world.store.read("renamed", world.live())
    assert caught.value.code == "fleet-name-changed"
    assert "prod" in caught.value.message
    assert "stoker-system/stoker-f1" in caught.value.hint
    world.store.read("prod", world.live())
    with pytest.raises(Stalled):
        world.store.read("renamed", world.live())


def test_another_fleet_name_stalls_although_shards_are_lost(world):
    world.run(*SETS)
    world.cluster.delete(ObjectRef("", "ConfigMap", "stoker-system", "stoker-f1-0-of-1"))
    world.restart()

    with pytest.raises(Stalled):
        world.store.read("renamed", world.live())


def test_a_recorded_name_that_a_person_mends_is_believed(world):
    world.run(*SETS)
    world.restart()
    with pytest.raises(Stalled):
        world.store.read("renamed", world.live())
    ref = ObjectRef("", "ConfigMap", "stoker-system", "stoker-f1")
    world.cluster.patch(ref, "merge", {"data": {"fleet": "renamed"}}, manager="kubectl")

    assert world.store.read("renamed", world.live()).fleet_name == "renamed"


def test_a_missing_namespace_is_named_with_what_to_do(world):
    store = InventoryStore(world.cluster, FLEET_ID, namespace="nowhere")
    store.read("prod", world.live())

    with pytest.raises(Stalled) as caught:
        store.write(store.current.union([(A, ObjectRef("", "ConfigMap", "llm", "c"), "")]))
    assert caught.value.code == "state-namespace-missing"
    assert "nowhere" in caught.value.hint


def test_a_write_without_an_answer_is_read_again(world):
    """Whether it happened is not known."""
    world.run(*SETS)

    def after(request, response):
        if request.method == "PUT":
            world.server.after = None
            raise Unreachable("no answer")

    world.server.after = after
    with pytest.raises(Unreachable):
        world.run(*SETS, rendered(B, config("b")))
    outcome = world.run(*SETS, rendered(B, config("b")))

    assert outcome.units[1].applied
    assert set(world.stored()) == {("a", "c"), ("b", "b")}


def test_a_failed_last_write_is_told_and_made_up_for(world):
    """The union still stands, so nothing is lost."""

    def before(request):
        if request.method == "PUT" and "configmaps/stoker-f1" in request.path:
            raise Unreachable("no answer")

    world.server.before = before
    outcome = world.run(*SETS)
    world.server.before = None

    assert outcome.failure is not None
    assert outcome.failure.code == "unreachable"
    assert outcome.units[0].applied
    assert world.stored() == {("a", "c"): ""}
    world.run(*SETS)
    assert world.stored()["a", "c"] == world.get(config())["metadata"]["uid"]


def test_more_shards_replace_fewer_only_when_all_are_complete(world, monkeypatch):
    """No shard over the cap, and at no instant an inventory with holes."""

    def small(entries, **options):
        return shards_from_entries(entries, cap_bytes=400, **options)

    monkeypatch.setattr(store_module, "shards_from_entries", small)
    few = [rendered(A, config())]
    many = [rendered(UnitRef("Bundle", "llm", f"u{n}"), config(f"c{n}")) for n in range(9)]
    world.run(*few)
    at_every_write = []
    world.server.after = lambda request, response: (
        at_every_write.append(whole(world)) if request.method in {"PUT", "POST", "DELETE"} else None
    )
    world.run(*few, *many)
    world.server.after = None

    assert all(at_every_write)
    assert len(maps(world)) > 3
    assert len(world.stored()) == 10
    assert len(maps(world)) - 1 == len(maps(world)["stoker-f1"]["data"]["shards"].split())
    world.run(*few, fleet=desired(A, allow_delete=("all",)))
    assert set(maps(world)) == {"stoker-f1", "stoker-f1-0-of-1"}


def whole(world):
    hook, world.server.after = world.server.after, None
    try:
        return InventoryStore(world.cluster, FLEET_ID).stored() is not None
    finally:
        world.server.after = hook


def test_an_inventory_too_large_stalls(world, monkeypatch):
    def none(entries, **options):
        raise ValueError("the inventory does not fit")

    monkeypatch.setattr(store_module, "shards_from_entries", none)
    store = InventoryStore(world.cluster, FLEET_ID)
    store.read("prod", world.live())

    with pytest.raises(Stalled) as caught:
        store.write(Inventory(FLEET_ID, "prod").union([(A, ObjectRef("", "X", "", "x"), "")]))
    assert caught.value.code == "inventory-too-large"


@pytest.mark.parametrize("stop_at", range(1, 9))
def test_a_kill_at_any_write_leaves_neither_orphan_nor_wrong_delete(world, stop_at):
    """a.4 P4: c.1 row 1 and P4: whatever was made is found again, and what left Git goes."""
    world.run(*SETS)
    sets = (rendered(A, config("new")), rendered(B, config("b")))
    left = [stop_at]

    def before(request):
        if request.method != "GET":
            left[0] -= 1
            if left[0] <= 0:
                raise KeyboardInterrupt

    world.server.before = before
    with contextlib.suppress(KeyboardInterrupt):
        world.run(*sets)
    world.server.before = None
    back = (rendered(A, config("new")),)
    for _ in range(3):
        world.restart()
        world.run(*back, fleet=desired(A, allow_delete=("all",)))

    assert world.has(config("new"))
    assert not world.has(config("b"))
    assert not world.has(config())
    assert set(world.stored()) == {("a", "new")}
