"""Decide: where each replica runs, how many there are, and the next step; pure."""

from stoker.decide.decide import decide, decide_steps
from stoker.decide.explain import explain

__all__ = ["decide", "decide_steps", "explain"]
