"""How long a simulated replica needs to start, phase by phase, and what its pod says about it.

In: a pod and what its node holds. Out: seconds for image pull, weights and engine init. The
figures are settings with plausible values, not measurements; scenes and tests set their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stoker.objects import names
from stoker.sim.nodes import Weights

__all__ = [
    "PreStop",
    "StartTimes",
    "engine_container",
    "flag_value",
    "has_host_path",
    "image_of",
    "is_engine_pod",
    "pre_stop_of",
    "served_names",
    "shutdown_seconds_of",
    "weights_of",
]

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class StartTimes:
    """Sizes in bytes, bandwidths in bytes a second, the rest in seconds.

    `image_bytes` and `weights_bytes` name sizes by image and by model URI. Weights that they
    don't name are two bytes a parameter where the name says how many, else the default.
    """

    image_bytes: Mapping[str, int] = field(default_factory=dict)
    weights_bytes: Mapping[str, int] = field(default_factory=dict)
    default_image_bytes: int = 9 * GIB
    default_weights_bytes: int = 15 * GIB
    pull_bytes_per_second: int = GIB // 2
    download_bytes_per_second: int = GIB // 2
    disk_bytes_per_second: int = 3 * GIB
    init_seconds: float = 4.0
    capture_seconds: float = 10.0
    plain_seconds: float = 1.0
    """What a container without a model needs."""
    stop_seconds: float = 1.0
    """From SIGTERM to the end, where no real engine runs."""

    def size_of_image(self, image: str) -> int:
        """Its size in the registry."""
        return self.image_bytes.get(image, self.default_image_bytes)

    def pull_seconds(self, image: str) -> float:
        """From nothing to unpacked."""
        return self.size_of_image(image) / self.pull_bytes_per_second

    def weights_seconds(self, weights: Weights, *, held: bool) -> float:
        """From disk when the node holds them, over the network when it doesn't."""
        rate = self.disk_bytes_per_second if held else self.download_bytes_per_second
        return weights.bytes / rate

    def engine_seconds(self, pod: dict[str, Any]) -> float:
        """Init, and graph capture unless the engine is told to skip it."""
        eager = "--enforce-eager" in _words(engine_container(pod))
        return self.init_seconds + (0 if eager else self.capture_seconds)

    def weights(self, pod: dict[str, Any]) -> Weights:
        """What the pod loads."""
        uri, revision = weights_of(pod)
        size = self.weights_bytes.get(uri) or _size_by_name(uri) or self.default_weights_bytes
        return Weights(uri, revision, size)


def is_engine_pod(pod: dict[str, Any]) -> bool:
    """Whether it serves a model: it carries a service's label."""
    return names.SERVICE_LABEL in (pod["metadata"].get("labels") or {})


def engine_container(pod: dict[str, Any]) -> dict[str, Any]:
    """The main container: `engine`, or the first one."""
    containers = pod["spec"]["containers"]
    found: dict[str, Any] = next((c for c in containers if c["name"] == "engine"), containers[0])
    return found


def image_of(pod: dict[str, Any]) -> str:
    """The main container's image, which is the one that takes long to pull."""
    return str(engine_container(pod).get("image") or "")


def has_host_path(pod: dict[str, Any]) -> bool:
    """Whether weights stay on the node when the pod goes."""
    return any("hostPath" in volume for volume in pod["spec"].get("volumes") or ())


def flag_value(pod: dict[str, Any], flag: str) -> str:
    """What follows a flag on the engine's command line, `--flag value` or `--flag=value`."""
    words = _words(engine_container(pod))
    for position, word in enumerate(words):
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
        if word == flag and position + 1 < len(words):
            return words[position + 1]
    return ""


def shutdown_seconds_of(pod: dict[str, Any]) -> float:
    """The engine's --shutdown-timeout; vLLM's default 0 aborts what is in flight."""
    text = flag_value(pod, "--shutdown-timeout")
    return float(text) if text.replace(".", "", 1).isdigit() else 0.0


@dataclass(frozen=True, slots=True)
class PreStop:
    """The engine's preStop hook: wait, then as long as requests are in flight, at most so long."""

    wait_seconds: float = 0.0
    longest_drain_seconds: float = 0.0


def pre_stop_of(pod: dict[str, Any]) -> PreStop:
    """Read a sleep, a shell's sleep, or the drain script of Stoker's templates.

    That script ends in three arguments: URL, seconds to wait, longest drain. Any other hook
    counts as none.
    """
    hook = (engine_container(pod).get("lifecycle") or {}).get("preStop") or {}
    if "sleep" in hook:
        return PreStop(float(hook["sleep"].get("seconds") or 0))
    command = (hook.get("exec") or {}).get("command") or []
    if len(command) >= 3 and "num_requests_running" in " ".join(command):
        return PreStop(float(command[-2]), float(command[-1]))
    found = re.search(r"\bsleep (\d+(?:\.\d+)?)", " ".join(command))
    return PreStop(float(found[1]) if found else 0.0)


def served_names(pod: dict[str, Any]) -> tuple[str, ...]:
    """The names behind --served-model-name, in order; empty without the flag."""
    words = _words(engine_container(pod))
    found: list[str] = []
    for position, word in enumerate(words):
        if word.startswith("--served-model-name="):
            found.append(word.partition("=")[2])
        elif word == "--served-model-name":
            for following in words[position + 1 :]:
                if following.startswith("-"):
                    break
                found.append(following)
    return tuple(found)


def weights_of(pod: dict[str, Any]) -> tuple[str, str]:
    """URI and revision that the engine loads, from its command line.

    A bare `owner/name` is a Hugging Face repository. Without --revision the pod's label
    says which.
    """
    model = flag_value(pod, "--model")
    words = _words(engine_container(pod))
    if not model and "serve" in words:
        after = words[words.index("serve") + 1 :]
        model = after[0] if after and not after[0].startswith("-") else ""
    labels = pod["metadata"].get("labels") or {}
    uri = model if "://" in model or not model else f"hf://{model}"
    revision = flag_value(pod, "--revision") or labels.get(names.MODEL_REVISION_LABEL, "")
    return uri or labels.get(names.SERVICE_LABEL, ""), revision


def _size_by_name(uri: str) -> int:
    """`…-7B-…` is 14 GB; 0 where the name doesn't say."""
    found = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z0-9])", uri, re.IGNORECASE)
    return round(float(found[1]) * 2e9) if found else 0


def _words(container: dict[str, Any]) -> list[str]:
    return [*(container.get("command") or ()), *(container.get("args") or ())]
