"""The apply stage: writes what differs, retires, prunes, keeps the inventory."""

from stoker.apply.apply import apply
from stoker.apply.history_store import HistoryStore
from stoker.apply.reasons import REASONS
from stoker.apply.store import InventoryStore
from stoker.apply.tally import Folding

__all__ = ["REASONS", "Folding", "HistoryStore", "InventoryStore", "apply"]
