"""The diff stage: what would be written, and why the rest is not."""

from stoker.diff.audit import Audit
from stoker.diff.diff import diff
from stoker.diff.memo import DiffMemo
from stoker.diff.reasons import REASONS
from stoker.diff.summary import Summary, summarise

__all__ = ["REASONS", "Audit", "DiffMemo", "Summary", "diff", "summarise"]
