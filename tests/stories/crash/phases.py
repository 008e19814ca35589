"""The phases of a fleet's life through which the controller is killed, again and again.

Each phase is a commit and what must be true once the fleet is at rest after it: a cycle
installs two services and a bundle on a fleet that is almost empty, updates, shrinks, moves an
object between units, removes them all, and restarts with nothing to do. The next cycle starts
where it began, so that hundreds of points are tried in one world.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from stories.files import NEW, OLD, a_config_map, a_fleet, a_service, the_fleet

SCHEDULER = {"mode": "Scheduler", "pools": [{"name": "gpu"}]}
_SOON = {"periodSeconds": 1}
_ENGINE = {"name": "engine", "startupProbe": _SOON, "readinessProbe": _SOON}
POD = {"spec": {"containers": [_ENGINE]}}
DRAIN = {"endpointSync": "1s", "max": "1s", "shutdown": "1s"}

MORE = """apiVersion: v1
kind: Namespace
metadata: {name: more}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inside, namespace: more}
data: {key: value}
"""
"""A namespace that the fleet makes; `llm` is somebody else's, who keeps other things in it."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A commit and its end. `files` None = no commit, the process only starts again.

    `tiny` and `pack` are replicas at the end, `floors` those that may never be missing on the
    way, `most` how many of `tiny` may be asked for at once. `data` holds what ConfigMaps hold
    at the end, by name; other names of the fleet's are gone.
    """

    name: str
    files: Mapping[str, str | None] | None
    revision: str
    tiny: int
    pack: int
    floors: tuple[int, int]
    most: int
    data: Mapping[str, str] = field(default_factory=dict)
    keeps_pods: bool = False


def tiny(replicas: int, revision: str) -> str:
    """The service of mode Nodes."""
    return a_service("tiny", replicas=replicas, revision=revision, drain=DRAIN, podTemplate=POD)


def pack(replicas: int, revision: str) -> str:
    """The service of mode Scheduler."""
    return a_service(
        "pack",
        replicas=replicas,
        revision=revision,
        placement=SCHEDULER,
        drain=DRAIN,
        podTemplate=POD,
    )


def _bundles(moving_in: str, extra: Mapping[str, str]) -> dict[str, dict[str, str]]:
    bundles = {
        "side": {"side.yaml": a_config_map("side")},
        "two": {"two.yaml": a_config_map("two")},
    }
    bundles[moving_in]["moving.yaml"] = a_config_map("moving")
    if extra:
        bundles["extra"] = {
            f"{name}.yaml": a_config_map(name, {"key": value}) for name, value in extra.items()
        }
    return bundles


def _tree(
    *, moving_in: str, extra: Mapping[str, str], services: tuple[str, ...] = ()
) -> dict[str, str]:
    fleet = a_fleet(prune={"mode": "Auto", "maxUnits": "60%"}, status={"flushInterval": "4s"})
    files = the_fleet(*services, fleet=fleet, **_bundles(moving_in, extra))
    return files | {"bundles/base/namespace.yaml": MORE}


_PLAIN = {"side": "value", "two": "value", "moving": "value", "inside": "value"}


def bare_fleet() -> dict[str, str]:
    """What stands before the first cycle and after each."""
    return _tree(moving_in="two", extra={})


def beginning() -> Phase:
    """The first commit of all, in a cluster that knows nothing of Stoker."""
    return Phase("begin", bare_fleet(), OLD, 0, 0, (0, 0), 0, _PLAIN)


def cycle(number: int) -> tuple[Phase, ...]:
    """The phases of a cycle, in order; the model revisions swap with each cycle."""
    first, second = (OLD, NEW) if number % 2 == 0 else (NEW, OLD)
    value = f"v{number}"
    trees = [
        bare_fleet(),
        _tree(
            moving_in="side",
            extra={"keep": value, "drop": value},
            services=(tiny(3, first), pack(2, first)),
        ),
        _tree(
            moving_in="side",
            extra={"keep": f"{value}-new"},
            services=(tiny(3, second), pack(2, second)),
        ),
        _tree(
            moving_in="side",
            extra={"keep": f"{value}-new"},
            services=(tiny(2, second), pack(1, second)),
        ),
        _tree(
            moving_in="two",
            extra={"keep": f"{value}-new"},
            services=(tiny(2, second), pack(1, second)),
        ),
        bare_fleet(),
    ]
    steps = [_difference(old, new) for old, new in pairwise(trees)]
    old_data = {**_PLAIN, "keep": value, "drop": value}
    new_data = {**_PLAIN, "keep": f"{value}-new"}
    return (
        Phase("install", steps[0], first, 3, 2, (0, 0), 3, old_data),
        Phase("update", steps[1], second, 3, 2, (2, 1), 4, new_data),
        Phase("shrink", steps[2], second, 2, 1, (2, 1), 3, new_data),
        Phase("move", steps[3], second, 2, 1, (2, 1), 2, new_data, keeps_pods=True),
        Phase("restart", None, second, 2, 1, (2, 1), 2, new_data, keeps_pods=True),
        Phase("remove", steps[4], second, 0, 0, (0, 0), 2, _PLAIN),
    )


def _difference(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    """The files to write, and those to delete as None."""
    changed: dict[str, str | None] = {p: t for p, t in new.items() if old.get(p) != t}
    return changed | {path: None for path in old if path not in new}
