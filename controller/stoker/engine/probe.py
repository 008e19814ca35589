"""Whether an engine can serve a token: the only proof that a replica is Ready.

`/health` answers 200 before the first completion works (cases.md row 91), so this asks for
one token. In: an address. Out: a `Probe` with the reason of a failure. Used by the simulated
kubelet as the pod's own startup probe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

__all__ = ["Probe", "serves_token"]


@dataclass(frozen=True, slots=True)
class Probe:
    """One answer. `reason` is empty exactly when `ok`."""

    ok: bool
    reason: str = ""


def serves_token(address: str, timeout_seconds: float, *, model: str = "") -> Probe:
    """Ask the engine at `host:port` for one token; never raises.

    Without `model` the first served one is asked. The time bounds each of at most two requests.
    """
    base = f"http://{address}"
    try:
        with httpx.Client(base_url=base, timeout=timeout_seconds, trust_env=False) as client:
            name = model or _first_model(client)
            if not name:
                return Probe(ok=False, reason="serves no model")
            body = {"model": name, "prompt": "ping", "max_tokens": 1, "temperature": 0}
            answer = client.post("/v1/completions", json=body)
            if answer.status_code != 200:
                return Probe(ok=False, reason=f"completion answered HTTP {answer.status_code}")
            return _judge(answer.json())
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return Probe(ok=False, reason=f"{type(error).__name__}: {error}"[:200])


def _first_model(client: httpx.Client) -> str:
    answer = client.get("/v1/models")
    if answer.status_code != 200:
        return ""
    data: Any = answer.json()
    models = data.get("data") if isinstance(data, dict) else None
    if not isinstance(models, list) or not models or not isinstance(models[0], dict):
        return ""
    return str(models[0].get("id") or "")


def _judge(data: Any) -> Probe:
    choices = data.get("choices") if isinstance(data, dict) else None
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return Probe(ok=True)
    return Probe(ok=False, reason="completion without choices")
