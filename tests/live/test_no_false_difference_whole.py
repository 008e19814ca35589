"""No false difference over more than 500 objects, on a control plane of its own.

Beside the slice, on the same cluster, what that left for consent would show as kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live.test_no_false_difference import Rig, check, rig_of
from stoker.sim.controlplane import ControlPlane


@pytest.fixture(scope="module")
def all_of_it(
    tmp_path_factory: pytest.TempPathFactory, own_control_plane: ControlPlane
) -> Iterator[Rig]:
    yield from rig_of(tmp_path_factory.mktemp("varied"), own_control_plane, seed=1, count=550)


@pytest.mark.full
def test_five_hundred_objects_are_in_sync_for_a_fresh_process(all_of_it: Rig) -> None:
    """The issue's bar: over 500 objects, defaults, unknown fields, a webhook, two API versions."""
    assert all_of_it.objects > 500
    check(all_of_it)
