"""The apply stage: writes what differs, retires, prunes, keeps the inventory."""

from stoker.apply.apply import apply
from stoker.apply.store import InventoryStore
from stoker.apply.tally import Folding

__all__ = ["Folding", "InventoryStore", "apply"]
