"""Stoker: a declarative GitOps controller for fleets of LLM inference servers.

Open `reconcile.py` first: one pass, nine calls.
"""

from stoker._version import __version__

__all__ = ["__version__"]
