"""A preview is the action: what diff says will be written and deleted is what apply does."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from stoker.model.change import Action
from stoker.model.prune import MaxUnits, PruneMode
from stoker.model.refs import UnitRef
from unit.apply.apply_world import World
from unit.diff.diff_builders import A, B, C, config, desired, rendered, secret

WORDS: tuple[dict[str, str], ...] = (
    {},
    {"stoker.dev/prune": "disabled"},
    {"stoker.dev/prune": "enabled"},
    {"stoker.dev/reconcile": "disabled"},
    {"stoker.dev/adopt": "enabled"},
    {"stoker.dev/adopt": "enabled", "stoker.dev/prune": "enabled"},
)
FOREIGN = ("x", "y")
"""Names that stand before the fleet comes; each adopted only where Git says so."""

objects = st.dictionaries(
    st.tuples(st.sampled_from(["ConfigMap", "Secret"]), st.sampled_from("vwxyz")),
    st.tuples(st.sampled_from(WORDS), st.integers(0, 1)),
    max_size=5,
)
fleets = st.fixed_dictionaries(
    {
        "units": st.dictionaries(st.sampled_from([A, B, C]), objects, min_size=1, max_size=3),
        "mode": st.sampled_from(PruneMode),
        "cap": st.integers(0, 3),
        "allowed": st.sampled_from([(), ("all",), ("Bundle/llm/a",), ("Secret/llm/v",)]),
    }
)


def body_of(kind: str, name: str, words: dict[str, str], value: int) -> dict[str, Any]:
    if kind == "ConfigMap":
        return config(name, {"a": str(value)}, annotations=dict(words))
    made = secret(name, stringData={"a": str(value)})
    made["metadata"]["annotations"] = dict(words)
    return made


def sets_of(units: dict[UnitRef, Any]) -> list[Any]:
    """Each object in the first unit that has it."""
    taken: set[tuple[str, str]] = set()
    found = []
    for unit in sorted(units):
        mine = {key: how for key, how in units[unit].items() if key not in taken}
        taken |= set(mine)
        bodies = [body_of(*key, *how) for key, how in sorted(mine.items())]
        found.append(rendered(unit, *bodies))
    return found


@settings(max_examples=120, deadline=None)
@given(st.lists(fleets, min_size=2, max_size=5))
def test_what_diff_shows_is_what_apply_does(history):
    """Issue B: preview equals action, whatever consents, caps and trailers say."""
    world = World()
    for name in FOREIGN:
        world.make(config(name, {"a": "theirs"}), manager="terraform")
    for wanted in history:
        sets = sets_of(wanted["units"])
        fleet = desired(
            *sorted(wanted["units"]),
            prune=wanted["mode"],
            max_units=MaxUnits(count=wanted["cap"]),
            allow_delete=wanted["allowed"],
        )
        _, changes = world.look(*sets, fleet=fleet)
        shown = [change for unit in changes.units for change in unit.changes]
        to_delete = {path_of(c.ref) for c in shown if c.action is Action.DELETE}
        to_write = {path_of(c.ref) for c in shown if c.action in {Action.CREATE, Action.CHANGE}}
        mark = world.mark

        world.run(*sets, fleet=fleet)

        sent = [
            (entry.method, entry.path.partition("/namespaces/llm/")[2])
            for entry in world.server.audit[mark:]
            if "/namespaces/llm/" in entry.path
            and entry.method != "GET"
            and ("dryRun", "All") not in entry.query
        ]
        assert to_delete == {path for method, path in sent if method == "DELETE"}
        assert to_write == {path for method, path in sent if method == "PATCH"}
        event(f"deletes {len(to_delete)}")


def path_of(ref: Any) -> str:
    return f"{ref.kind.lower()}s/{ref.name}"


@settings(max_examples=60, deadline=None)
@given(st.lists(fleets, min_size=2, max_size=4))
def test_nothing_goes_without_the_consent_its_kind_or_its_maker_asks_for(history):
    """Secrets, and objects that stood before the fleet came, outlive any history without a
    consent on the object itself. A name does not make an object foreign: where the original
    went by consent, what the fleet makes again is its own.
    """
    world = World()
    foreign = {
        f"configmaps/{name}": world.make(config(name, {"a": "theirs"}), manager="terraform")
        for name in FOREIGN
    }
    uids = {path: body["metadata"]["uid"] for path, body in foreign.items()}
    for wanted in history:
        sets = sets_of(wanted["units"])
        fleet = desired(*sorted(wanted["units"]), allow_delete=("all",))
        standing = {path_of(o.ref): o.body["metadata"] for o in world.live().objects.values()}
        guarded = {
            path
            for path, metadata in standing.items()
            if path.startswith("secrets/") or uids.get(path) == metadata["uid"]
        }
        may_go = {
            path
            for path, metadata in standing.items()
            if (metadata.get("annotations") or {}).get("stoker.dev/prune") == "enabled"
        }
        mark = world.mark
        world.run(*sets, fleet=fleet)
        gone = {
            entry.path.partition("/namespaces/llm/")[2]
            for entry in world.server.audit[mark:]
            if entry.method == "DELETE"
        }
        assert not (gone & guarded) - may_go
        event(f"deletes {len(gone)}")
