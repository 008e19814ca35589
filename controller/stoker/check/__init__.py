"""Stage check: what is wrong with rendered manifests, before anything is sent."""

from stoker.check.check import CheckMemo, check
from stoker.check.reasons import REASONS

__all__ = ["check", "CheckMemo", "REASONS"]
