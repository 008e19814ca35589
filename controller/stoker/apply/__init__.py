"""The apply stage: writes what differs, retires, prunes, keeps the inventory."""

from stoker.apply.apply import apply
from stoker.apply.history_store import HISTORY_LABEL, HistoryStore
from stoker.apply.reasons import REASONS
from stoker.apply.release import Held, Release, held_objects, release_objects
from stoker.apply.store import INVENTORY_LABEL, InventoryStore
from stoker.apply.tally import Folding

__all__ = [
    "HISTORY_LABEL",
    "INVENTORY_LABEL",
    "REASONS",
    "Folding",
    "Held",
    "HistoryStore",
    "InventoryStore",
    "Release",
    "apply",
    "held_objects",
    "release_objects",
]
