"""The KV blocks of prompts that an engine keeps for the next one that begins alike.

In: names of prefix blocks (numbers, as traces give them). Out: which are there already, and
how many KV blocks they hold. What no sequence uses leaves by least recent use as soon as the
room is needed. Used by `sim.engine_batch`; pure.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["PrefixCache"]


@dataclass(slots=True)
class PrefixCache:
    """`blocks_each` KV blocks for each prefix block."""

    blocks_each: int
    spare: OrderedDict[int, None] = field(default_factory=OrderedDict)
    """Blocks that no sequence uses, the least recently used first. No plain dict: to find its
    first key takes as long as keys before it were deleted."""
    _users: dict[int, int] = field(default_factory=dict)

    @property
    def held_blocks(self) -> int:
        """KV blocks that sequences use together."""
        return len(self._users) * self.blocks_each

    def hits(self, prefix: Sequence[int]) -> int:
        """How many blocks of that beginning are there, without a gap."""
        for number, block in enumerate(prefix):
            if block not in self._users and block not in self.spare:
                return number
        return len(prefix)

    def saved_blocks(self, prefix: Sequence[int]) -> int:
        """KV blocks that need not be found for it: those that others hold at this moment."""
        found = 0
        for block in prefix[: self.hits(prefix)]:
            found += block in self._users
        return found * self.blocks_each

    def take(self, prefix: Sequence[int]) -> list[int]:
        """Hold what is there of that beginning; gives those blocks."""
        found = list(prefix[: self.hits(prefix)])
        for block in found:
            self.spare.pop(block, None)
            self._users[block] = self._users.get(block, 0) + 1
        return found

    def publish(self, prefix: Sequence[int], shared: list[int]) -> int:
        """Let others use what was computed; grows `shared`, gives by how many blocks.

        One that somebody else computed meanwhile stays a copy of its own, as in vLLM.
        """
        before = len(shared)
        for block in prefix[before:]:
            if block in self._users:
                break
            self.spare.pop(block, None)
            self._users[block] = 1
            shared.append(block)
        return len(shared) - before

    def give_back(self, shared: Sequence[int]) -> None:
        """Hold them no longer. The end of a prefix leaves before its beginning."""
        for block in reversed(shared):
            users = self._users[block] - 1
            if users:
                self._users[block] = users
            else:
                del self._users[block]
                self.spare[block] = None

    def keep_within(self, blocks: int) -> None:
        """Forget spare blocks until the cache is no larger than that many KV blocks."""
        allowed = max(0, blocks // self.blocks_each - len(self._users))
        while len(self.spare) > allowed:
            self.spare.popitem(last=False)
