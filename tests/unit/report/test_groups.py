"""Replicas over several nodes as people read them."""

from __future__ import annotations

import pytest

from stoker.report.unit_report import ReplicaCounts


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (ReplicaCounts(2, 1, 0), "1/2"),
        (ReplicaCounts(2, 2, 0, pods_each=4), "2/2 groups (8 pods)"),
        (ReplicaCounts(None, 1, 0, pods_each=2), "1/? groups (? pods)"),
    ],
)
def test_groups_are_counted_and_their_pods_told_beside(counts, expected):
    assert expected == counts.told()
