"""The message of a status commit: what a person sees in the log of the branch.

Called by publish.
"""

from __future__ import annotations

from typing import Any

__all__ = ["status_message"]


def status_message(status: dict[str, Any], fleet_name: str, fleet_id: str) -> str:
    """Subject, what needs attention, trailers that other programs recognise it by."""
    summary = status["summary"]
    unhealthy = summary["units"] - summary["healthy"]
    health = str(status["health"]["status"])
    count = f" {unhealthy} of {summary['units']}" if unhealthy else ""
    revision = str(status["lastAttemptedRevision"]).replace("@sha1:", "@")
    revision = revision[: revision.rfind("@") + 8]
    subject = f"status: {health}{count}, {status['sync']['status']} {revision}".rstrip()
    lines = [f"{entry['unit']} {entry['reason']}" for entry in status["attention"][:5]]
    trailers = (
        f"Stoker-Fleet: {fleet_name}",
        f"Stoker-Fleet-Id: {fleet_id}",
        f"Stoker-Version: {status['controller']['version']}",
        f"Stoker-Revision: {status['lastAttemptedRevision']}",
        f"Stoker-Decision: {status['decisionDigest']}",
    )
    body = ["", *lines] if lines else []
    return "\n".join([f"{subject} [skip ci]", *body, "", *trailers]) + "\n"
