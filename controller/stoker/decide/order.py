"""The order ReadyPoolPack: which of the nodes that fit is best. Called by place.

Keys compare smallest first. `near` is the part that all nodes of a class share, `rank`
the whole key of one node.
"""

from __future__ import annotations

__all__ = ["Near", "Rank", "near", "rank"]

Near = tuple[int, int]
Rank = tuple[int, int, int, int, str]


def near(bucket: int, pool: int, *, urgent: bool) -> Near:
    """Ready-in bucket, then pool, for a start that restores the floor or answers a notice;

    for any other start pool, then bucket. `pool` is the place in the service's list.
    """
    return (bucket, pool) if urgent else (pool, bucket)


def rank(nearness: Near, *, own_here: bool, free_gpus: int, name: str) -> Rank:
    """Where bucket and pool are equal: a node without a replica of the same service;

    then pack (the least free GPUs that still fit, so that large replicas keep whole
    nodes); then the name.
    """
    return (*nearness, int(own_here), free_gpus, name)
