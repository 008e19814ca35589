"""What `sim.engine_batch` works with: an engine's size and speed, a sequence, an iteration.

Plain data, also of those who start engines. The live stand-in and the simulator share it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stoker.sim.engine_batch import Batch

__all__ = ["BatchProfile", "Sequence", "Step"]


@dataclass(frozen=True, slots=True)
class BatchProfile:
    """How fast and how large the engine is.

    A step takes `step_seconds` + `sequence_seconds` for each decoding sequence +
    `context_seconds` for each token of their contexts + prefill tokens /
    `prefill_tokens_per_second`; the shape is the linear iteration model of semantics.md 1.5,
    the figures are those of a small model on one mid-size GPU. `prefix_tokens` is the size of
    the blocks that prefixes of requests are named by, a multiple of `block_tokens`.
    """

    max_sequences: int = 16
    max_batched_tokens: int = 2048
    kv_blocks: int = 2048
    block_tokens: int = 16
    step_seconds: float = 0.015
    sequence_seconds: float = 0.0005
    prefill_tokens_per_second: float = 8000.0
    context_seconds: float = 0.0
    prefix_tokens: int = 512


@dataclass(slots=True, eq=False)
class Sequence:
    """One request on its way: `prefilled` of its prompt and `generated` tokens so far.

    `finish_reason` is empty until it leaves: `stop`, `length` or `abort`. `prefix` names the
    blocks that its prompt begins with, for the cache; `shared` of them it holds in the cache.
    """

    number: int
    prompt_tokens: int
    max_tokens: int
    prefilled: int = 0
    finish_reason: str = ""
    preempted: int = 0
    prefix: tuple[int, ...] = ()
    shared: list[int] = field(default_factory=list)
    decoding: bool = False
    _batch: Batch | None = None
    _tokens: int = 0
    """Generated tokens; while it decodes, less the steps of its batch, which count on."""

    @property
    def generated(self) -> int:
        """Tokens of the answer so far."""
        return self._tokens + self._batch.steps if self.decoding and self._batch else self._tokens

    @property
    def context_tokens(self) -> int:
        """Prompt and generated tokens, all of which need KV blocks."""
        return self.prompt_tokens + self.generated


@dataclass(frozen=True, slots=True)
class Step:
    """What one iteration did. `emitted` got one token each, `finished` are among them."""

    seconds: float
    admitted: tuple[Sequence, ...] = ()
    emitted: tuple[Sequence, ...] = ()
    finished: tuple[Sequence, ...] = ()
    prefill_tokens: int = 0
    preemptions: int = 0
    first: tuple[Sequence, ...] = ()
    """Those whose prefill ended here; their token is the first, or the next after a preemption."""
