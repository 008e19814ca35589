"""Who the API server takes us for, and whether that is who we should be.

A Cluster and the expected user come in; nothing, or a Stalled finding, goes out. Asked once
at the start of whatever writes (a client library once sent no credentials at all, and the
server answered as to anybody: security table row 126).
"""

from __future__ import annotations

import base64
import json

from stoker.errors import Stalled
from stoker.kube.errors import Forbidden, KindNotFound
from stoker.log import get_log
from stoker.model.ports import Cluster

__all__ = ["account_of_token", "bound_node", "check_caller"]

_log = get_log("kube")

ANONYMOUS = "system:anonymous"
_ACCOUNT = "system:serviceaccount:"
_NODE = "authentication.kubernetes.io/node-"
"""What a token that is bound to a pod says of its node (1.30 and later)."""


_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}


def bound_node(cluster: Cluster) -> tuple[str, str]:
    """Name and UID of the node that our token is bound to; empty where it is to none.

    Needs no right. Raises what the Cluster port raises, but for servers without the question.
    """
    try:
        answer = cluster.create(_REVIEW, manager="stoker")
    except (KindNotFound, Forbidden):
        return "", ""
    extra = ((answer.get("status") or {}).get("userInfo") or {}).get("extra") or {}
    name, uid = (extra.get(_NODE + what) or [""] for what in ("name", "uid"))
    return str(name[0]), str(uid[0])


def check_caller(cluster: Cluster, expected: str) -> str:
    """The user that the API server sees; `expected` empty accepts anybody but nobody.

    Raises Stalled (wrong-caller) when it is another, and what the Cluster port raises. A
    server that has no such question (before 1.28) or forbids it is believed; empty then.
    """
    try:
        answer = cluster.create(_REVIEW, manager="stoker")
    except (KindNotFound, Forbidden) as error:
        _log.warning("caller.unknown", code=error.code, message=error.message)
        return ""
    seen = str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "")
    if seen in {"", ANONYMOUS} or (expected and seen != expected):
        wanted = f", not as {expected}" if expected else ""
        raise Stalled(
            f"the API server takes us for {seen or 'nobody'}{wanted}",
            code="wrong-caller",
            hint="check the token of the service account, or the user of the kubeconfig",
        )
    _log.info("caller.known", user=seen)
    return seen


def account_of_token(token: str) -> str:
    """The service account that a bearer token names; empty when it names none.

    Only what to expect: whether the token is genuine is the API server's business.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        subject = json.loads(base64.urlsafe_b64decode(padded))["sub"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return subject if isinstance(subject, str) and subject.startswith(_ACCOUNT) else ""
