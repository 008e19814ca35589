"""The closed list of reasons with a line each, joined from the stages that use them.

Printed by `stoker explain CODE` and docs/reasons.md. Errors, findings and notes use
kebab-case codes; a condition's reason is such a code in CamelCase, or one of the words below.
"""

from __future__ import annotations

import re

__all__ = ["all_reasons", "reason_groups", "reason_of"]

_COMMANDS = {
    "already-running": "A development cluster runs in that folder already.",
    "controller-running": "A controller works for the fleet; stop it before leaving the cluster.",
    "control-plane-not-ready": "The control plane did not start in time; its log says why.",
    "credentials-unreadable": "A credentials file cannot be read, or is a link out of its folder.",
    "file-error": "The operating system refused a file, for instance for want of rights or space.",
    "file-exists": "A file would be overwritten; nothing was written.",
    "invalid-recording": "The recorded start cannot be read: a file is missing or wrong.",
    "invalid-snapshot": "The recorded snapshot cannot be read by this version.",
    "invalid-trace": "A trace file cannot be read; the message has the line.",
    "lease-held": "Another controller of this fleet is at work; a command beside it would fight it.",
    "no-control-plane": "No control plane can be had here: there is none, and none can be built.",
    "no-scaling": "The service has no scaling block that Stoker follows.",
    "no-status": "Neither the cluster nor the status branch of this clone can be read.",
    "no-such-pod": "The cluster has no pod of that service, and none of that name.",
    "no-such-unit": "No unit of the fleet has this name.",
    "not-applied-whole": "Some objects could not be written; status says which and why.",
    "plan-file-damaged": "The file is not as `stoker plan --out` wrote it; make it anew.",
    "plan-file-unwritable": "The plan cannot be written to that file.",
    "plan-stale": "What would be written is no longer what the plan says; nothing was written.",
    "release-unreadable": "The Secret of a Helm release does not hold what Helm writes there.",
    "rollback-shared-file": "The service's file holds other units that would go back too.",
    "shipped-files-missing": "The installation lacks its templates; install the wheel again.",
    "source-not-carried": "What was to be imported cannot be adopted; the message says why.",
    "source-not-found": "What was to be imported is not in the cluster.",
    "state-namespace-missing": "The namespace of inventory and lease is missing.",
    "usage": "The command was used wrongly.",
    "wrong-cluster": "The cluster's UID is not the one in the Fleet file; nothing was done.",
}

_KUBECONFIG = {
    "kubeconfig-exec-refused": "The kubeconfig's user runs a program; STOKER_ALLOW_EXEC=1 allows it.",
    "kubeconfig-invalid": "The kubeconfig does not say how to reach a cluster.",
    "kubeconfig-missing": "The kubeconfig file is not there.",
    "kubeconfig-not-found": "No kubeconfig is there; name one with --kubeconfig or KUBECONFIG.",
    "kubeconfig-unsupported": "The kubeconfig uses a way to log in that Stoker does not know.",
    "login-failed": "The program that the kubeconfig names gave no credentials.",
    "wrong-caller": "The API server takes us for somebody else than the credentials name.",
    "not-in-cluster": "The mounted service account of the pod is missing.",
    "token-unreadable": "The token file cannot be read, or is a link out of its folder.",
}

_API = {
    "already-exists": "The name is taken.",
    "api-redirect-refused": "The API server redirects, which is never followed.",
    "api-server-unreachable": "The API server did not answer, or not in time.",
    "api-answer-too-large": "The API server's answer has no end in sight; it was cut off.",
    "api-server-untrusted": "The API server's certificate is not one that we trust.",
    "api-server-unverified": "The API server may be somebody else: its certificate is not checked.",
    "bad-input": "Files, flags or manifests are wrong.",
    "conflict": "Somebody else wrote the object, or owns a field of it; it is read again.",
    "error": "An error without a code of its own.",
    "forbidden": "The API server does not let us do this; `kubectl auth can-i` says what it does.",
    "lease-lost": "The lease ran out or another controller took it; this process writes nothing.",
    "invalid-object": "The API server takes the object for wrong; sending it again changes nothing.",
    "refused": "The other side said no, and will say it again.",
    "resource-version-gone": "A list is too old to be continued; it is read anew.",
    "retryable": "The same request may work later; it is tried again.",
    "server-failure": "The API server failed; it is tried again.",
    "stalled": "A person must act; retrying alone changes nothing.",
    "too-many-requests": "The API server asks us to wait, and we do.",
    "unreachable": "The other side did not answer; whether a write happened is unknown.",
    "waiting": "Something else must happen first; the message says what.",
    "watch-refused": "The API server ended a watch; the kind is listed again.",
}

_HOLDS = {
    "ChangeWindowClosed": "The fleet has no open change window; what was applied is kept up.",
    "GivesWay": "Replicas leave for a service of higher priority, which may take their room.",
    "HeldNoCapacity": "No node can take the replica now, and none is asked for (placement.whenFull).",
    "Reclaiming": "Services of lower priority make room; it starts there once they have left.",
    "SnapshotUnknown": "What the decision needs could not be read, so everything stays as it is.",
    "StartsFailing": "Replicas of this rev do not start, and no older one serves.",
    "Suspended": "Suspended in Git or by hand: nothing of it is written, deleted or scaled.",
    "UpdateFailed": "Replicas of the new rev do not start; those of the old one go on serving.",
    "WaitingForMoves": "A move waits for those of other services (disruption of the Fleet).",
    "UpdatePaused": "An update waits on purpose (update.pause) before the next replica.",
    "WaitingForDeparture": "Room comes free on a node that another replica is leaving.",
    "WaitingForDependency": "A unit of dependsOn is not there yet; what runs stays.",
}

_CONDITIONS = {
    "ChangeWindowClosed": "A newer revision waits for its change window.",
    "CountUnknown": "Who owns the count of replicas could not be read.",
    "Healthy": "Everything that stands is well.",
    "Idle": "Nothing is under way.",
    "Kept": "It left Git; its objects stay because of policy or for lack of proof.",
    "NotCreated": "It is wanted and does not exist yet.",
    "NotStalled": "Nobody has to act.",
    "NotYet": "There was no occasion for it yet.",
    "NodesQuarantined": "Starts failed on a node, which is left out for a while; see its lines.",
    "Observing": "Mode Observe: differences are reported, nothing is written.",
    "OutOfSync": "The cluster is not what Git says.",
    "Progressing": "It is on its way.",
    "ProgressingWithRetry": "It failed in a way that may pass, and is tried again.",
    "PruneHeld": "Something left Git and is not deleted; the message says why.",
    "Pruning": "What left Git is being deleted.",
    "Pushed": "The status branch holds the newest status.",
    "ScaledToZero": "Zero replicas are wanted, and none stands.",
    "Starting": "Replicas are on their way to Ready.",
    "Stuck": "A replica takes longer than coldStart.deadline, or crashes.",
    "Suspended": "Suspended in Git or by hand; the condition of that name says by whom.",
    "Succeeded": "As Git wants it, and serving.",
    "TimedOut": "It is not Healthy within its spec.timeout.",
    "UnitsNotReady": "Some units of the fleet are not Ready; the message names them.",
    "Unknown": "It could not be read, and unknown is not well.",
    "Waiting": "Something else must happen first; the message says what.",
}

_HEALTH = {
    "Current": "A health file's expression current holds.",
    "ExpressionFailed": "An expression of the health file fails on this object: Unknown, never well.",
    "ExpressionsMissing": "The package that evaluates health files is not installed here.",
    "Failed": "A health file's expression failed holds.",
    "HealthFileWrong": "The health file of this kind has an expression that cannot be used.",
    "InProgress": "A health file's expression inProgress holds.",
    "NoHealthCheck": "The kind has a status without a condition Ready, and no health file reads it.",
    "NotCurrent": "No expression of the health file holds yet.",
    "NotObserved": "Its controller has not looked at it, or not at this generation.",
    "Suspended": "It is paused on purpose.",
}

_RULES = {
    "bin-pack": "Chosen: the fewest free GPUs that fit (placement.order BinPack).",
    "efficiency-aware": "Chosen: the warmest, of those the most efficient (placement.order EfficiencyAware).",
    "pool-order": "Chosen: the first pool of the service with room, there the node that is ready soonest.",
    "soonest": "Chosen for the floor or for a notice: the node that is ready soonest, then by pool.",
    "spread": "Chosen: a node without a replica of the service, the most free GPUs (placement.order Spread).",
    "unpinned": "No node has room: it starts without one, so that one is added (placement.whenFull Unpinned).",
    "warmth-first": "Chosen: the warmest, of those the least busy (placement.order WarmthFirst).",
    "cordoned": "The node is cordoned.",
    "cpu": "Too little CPU is free on the node.",
    "devices": "Too few devices of another kind are free on the node.",
    "failed-here": "A replica of this service is stuck on the node.",
    "gpu-memory": "A GPU of the node has less memory than gpu.minMemory.",
    "gpu-product": "The node's GPU product is not in gpu.products.",
    "gpu-unknown": "The node's GPUs cannot be counted, for instance before the device plugin runs.",
    "gpus": "Too few GPUs are free on the node.",
    "leaving-here": "A replica of this service is still leaving the node.",
    "memory": "Too little memory is free on the node.",
    "node-affinity": "The pod's required node affinity does not match.",
    "node-selector": "The pod's node selector does not match.",
    "not-ready": "The node is not Ready.",
    "noticed": "The node has been given notice: it will go away.",
    "pods": "The node takes no further pod.",
    "pool": "The node is in none of the service's pools.",
    "pool-base": "Another pool lacks replicas of its base (placement.pools[].base), which comes first.",
    "group-domain": "Too few nodes with one value of placement.groupTopology.key fit: a group starts whole.",
    "spot-share": "As many replicas as placement.spot.maxPercent allows stand on spot already.",
    "quarantined": "Starts failed on the node: it is left out, for 10 minutes first, at most 24 hours.",
    "taint": "The node has a taint that the pod does not tolerate.",
    "topology-spread": "One more replica there would be more than placement.topologySpread allows.",
}


def reason_groups() -> dict[str, dict[str, str]]:
    """Title to code to line, each group sorted by code; a code may stand in two groups."""
    from stoker.apply import REASONS as APPLY
    from stoker.check import REASONS as CHECK
    from stoker.diff import REASONS as DIFF
    from stoker.render import REASONS as RENDER
    from stoker.report import REASONS as REPORT
    from stoker.source import REASONS as SOURCE

    groups = {
        "Fleet files and Git": SOURCE,
        "Templates and manifests": {**RENDER, **CHECK},
        "Differences and deletes": DIFF,
        "Apply": APPLY,
        "Status and install": REPORT,
        "API server": _API,
        "Kubeconfig": _KUBECONFIG,
        "Commands": _COMMANDS,
        "Holds": _HOLDS,
        "Conditions": _CONDITIONS,
        "Health files": _HEALTH,
        "Rules that turn a node away": _RULES,
    }
    return {title: dict(sorted(group.items())) for title, group in groups.items()}


def all_reasons() -> dict[str, str]:
    """Code -> one line, sorted by code."""
    return dict(sorted(pair for group in reason_groups().values() for pair in group.items()))


def reason_of(code: str) -> str | None:
    """The line of a code, also when it is spelled as a condition's reason; None for no code."""
    reasons = all_reasons()
    kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", code).lower()
    return reasons.get(code) or reasons.get(kebab)
