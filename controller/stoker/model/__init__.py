"""Frozen data passed between stages, and the ports they use; derived properties only."""
