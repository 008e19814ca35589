"""Pools by name, and the lock that says whether a cluster runs."""

from __future__ import annotations

import threading

import pytest

from stoker.clock import SystemClock
from stoker.errors import Stalled
from stoker.sim.dev_cluster import DevCluster, NodePool, play_nodes, pool_from_text
from unit.sim.sim_builders import Sim


@pytest.mark.parametrize(
    ("text", "pool"),
    [
        ("l4=3x1", NodePool("l4", 3, 1)),
        ("h100-spot=2x8:spot", NodePool("h100-spot", 2, 8, spot=True)),
        ("cpu=1x0", NodePool("cpu", 1, 0)),
    ],
)
def test_a_pool_is_a_name_a_count_and_gpus(text, pool):
    assert pool == pool_from_text(text)


@pytest.mark.parametrize("text", ["l4", "l4=3", "l4=x1", "L4=1x1", "-a=1x1", "l4=1x1:cheap"])
def test_anything_else_is_wrong_use(text):
    with pytest.raises(Stalled) as caught:
        pool_from_text(text)

    assert caught.value.code == "usage"


def test_played_nodes_stand_with_their_pools_label():
    sim = Sim()
    stop = threading.Event()
    pools = (NodePool("l4", 2, 1), NodePool("spot", 1, 4, spot=True))
    play_nodes(sim.server, pools, stop, clock=SystemClock(), ready=stop.set)
    nodes = {n["metadata"]["name"]: n["metadata"]["labels"]["pool"] for n in sim.all("Node")}

    assert {"l4-1": "l4", "l4-2": "l4", "spot-1": "spot"} == nodes


def test_nobody_runs_in_a_new_folder_nor_after_a_crash(tmp_path):
    """A number in a file proves nothing; the lock dies with its owner."""
    cluster = DevCluster(tmp_path)
    new = (cluster.running_pid(), cluster.ready, cluster.stop())
    (tmp_path / "lock").write_text("1")
    (tmp_path / "ready").touch()

    assert (0, False, False) == new
    assert (0, False) == (cluster.running_pid(), cluster.ready)


def test_a_running_one_is_found_and_not_started_twice(tmp_path):
    cluster = DevCluster(tmp_path)
    with cluster._lock():
        found = DevCluster(tmp_path).running_pid()
        with pytest.raises(Stalled) as caught:
            DevCluster(tmp_path).serve(threading.Event())

    assert found > 0
    assert caught.value.code == "already-running"
    assert DevCluster(tmp_path).running_pid() == 0
