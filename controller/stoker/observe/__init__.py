"""The observe stage: caches of the cluster, and a snapshot of them once a pass."""

from stoker.observe.events import ObjectEvent
from stoker.observe.keys import WatchKey, base_keys
from stoker.observe.listed import listed
from stoker.observe.live import CachedLive
from stoker.observe.news import News
from stoker.observe.observe import Observation, observe
from stoker.observe.observer import Observer, WatchStatus
from stoker.observe.pods import pod_facts, requests_of_pod
from stoker.observe.replicas import phase_of

__all__ = [
    "observe",
    "CachedLive",
    "News",
    "Observation",
    "ObjectEvent",
    "Observer",
    "WatchKey",
    "WatchStatus",
    "base_keys",
    "listed",
    "phase_of",
    "pod_facts",
    "requests_of_pod",
]
