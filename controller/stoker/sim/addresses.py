"""Addresses for simulated pods, from the ranges that documentation may use.

The API server refuses loopback addresses in EndpointSlices, and one such pod keeps the whole
slice empty (tried 2026-11-29): a pod's true address stands in an annotation instead.
"""

from __future__ import annotations

import heapq
from ipaddress import IPv4Address, IPv4Network

from stoker.errors import Bug

__all__ = ["HOST_IP", "AddressPool"]

HOST_IP = "198.18.0.1"
"""Every simulated node's address, from the benchmarking range of RFC 2544."""
# RFC 5737 first, which people recognise; 65,534 more of RFC 2544 for large simulations.
_RANGES = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "198.19.0.0/16")


class AddressPool:
    """Hands out the lowest free address; the same one to the same owner."""

    def __init__(self) -> None:
        self._fresh = 0
        """How many addresses, counted through the ranges, were handed out for the first time."""
        self._returned: list[tuple[int, IPv4Address]] = []
        self._owners: dict[str, str] = {}
        self._taken: set[str] = set()

    def take(self, owner: str, *, wanted: str = "") -> str:
        """An address for `owner`; `wanted` is one that it already has."""
        if owner not in self._owners:
            self._owners[owner] = wanted or self._free()
            self._taken.add(self._owners[owner])
        return self._owners[owner]

    def give_back(self, owner: str) -> None:
        """The owner is gone."""
        address = self._owners.pop(owner, "")
        if address:
            self._taken.discard(address)
            heapq.heappush(self._returned, (_rank(address), IPv4Address(address)))

    def _free(self) -> str:
        """The lowest returned or else the next fresh one that nobody brought along."""
        while self._returned:
            address = str(heapq.heappop(self._returned)[1])
            if address not in self._taken:
                return address
        while True:
            address = _nth(self._fresh)
            self._fresh += 1
            if address not in self._taken:
                return address


def _nth(number: int) -> str:
    """The host address of that number from 0, counted through the ranges."""
    for text in _RANGES:
        network = IPv4Network(text)
        hosts = network.num_addresses - 2
        if number < hosts:
            return str(network[number + 1])
        number -= hosts
    message = f"no free address is left: the simulation has {len(_RANGES)} ranges"
    raise Bug(message)


def _rank(address: str) -> int:
    """Position of its range, so that the lowest is the one that would come first."""
    found = IPv4Address(address)
    ranges = [IPv4Network(text) for text in _RANGES]
    return next((n for n, each in enumerate(ranges) if found in each), len(ranges))
