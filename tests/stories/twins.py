"""Copies of worlds: what many stories begin with is played once and copied from then on."""

from __future__ import annotations

import copy
import copyreg
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

from stoker.cli.world import World
from stoker.kube.transport import Transport


def twin_of(world: World, folder: Path, *, wrap: Callable[[Transport], Transport]) -> World:
    """The cluster and repository of a world as they stand, once more.

    Its controller is yet to start. The world is in memory, and its own controller stopped.
    """
    twin = copy.copy(world)
    copyreg.pickle(type(threading.Lock()), lambda _: (threading.Lock, ()))
    copyreg.pickle(type(threading.RLock()), lambda _: (threading.RLock, ()))
    parts = (world.clock, world.memory, world.cluster, world.workloads, world.kubelet)
    pickled = pickle.dumps(parts, pickle.HIGHEST_PROTOCOL)
    twin.clock, twin.server, twin.cluster, twin.workloads, twin.kubelet = pickle.loads(pickled)
    twin._folder, twin._wrap = folder, wrap
    twin._session, twin.work, twin._starts = None, None, 0
    twin._repository = world._repository.copied(folder)
    return twin
