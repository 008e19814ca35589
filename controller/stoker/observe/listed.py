"""The live view of everything that a pass may touch, with every kind of it listed first.

The rendered sets and the stored inventory come in; the view that diff, apply and report read
goes out. Called by reconcile, once it is known what is rendered.
"""

from __future__ import annotations

from dataclasses import replace

from stoker.model.live import LiveView
from stoker.model.manifest import ManifestSet
from stoker.model.workload import GROUP_KIND
from stoker.objects.inventory import Inventory
from stoker.observe.keys import WatchKey, base_keys
from stoker.observe.observer import Observer

__all__ = ["listed"]

_USUAL_KINDS = (
    ("", "ConfigMap"),
    ("", "Service"),
    ("", "ServiceAccount"),
    ("apps", "Deployment"),
    GROUP_KIND,
    ("policy", "PodDisruptionBudget"),
)
"""What nearly every unit is made of: looked through for marks where no inventory is left."""


def listed(observer: Observer, sets: tuple[ManifestSet, ...], stored: Inventory | None) -> LiveView:
    """The live view, once every kind that is rendered or owned is listed.

    For passes that look at everything: what was news until now is in the view.
    """
    refs = {m.ref for s in sets for m in s.manifests} | {ref for s in sets for ref in s.kept}
    keys = {WatchKey(ref.group, ref.kind, ref.version, ref.namespace) for ref in refs}
    if stored is not None:
        owned = stored.owners()
        keys |= {WatchKey(ref.group, ref.kind, ref.version, ref.namespace) for ref in owned}
    else:
        places = {s.unit.namespace for s in sets}
        keys |= {WatchKey(*kind, "v1", place) for kind in _USUAL_KINDS for place in places}
    wide = {key for key in base_keys(()) if not key.namespace}
    observer.ensure(key for key in keys if replace(key, namespace="") not in wide)
    observer.news()
    return observer.live()
