"""How far the update to the wanted rev is: its pause, and a rev that failed. Pure.

Read by work and transition; decide remembers what `learned` gives. A rev that failed next
to an older one that serves is blocked until Git has another rev: from the next pass on the
service is worked on as it was when all of it was last Ready, as far as Git still has that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from stoker.decide.case import Case
from stoker.decide.fate import Judged
from stoker.decide.slots import Standing, slots_of
from stoker.model.moves import OnFailure
from stoker.model.plan import Hold
from stoker.model.times import rfc3339
from stoker.model.update_history import UpdateHistory

__all__ = ["NO_TRIAL", "Trial", "held_for_pause", "held_for_rev", "learned", "parted", "trial_of"]


@dataclass(frozen=True, slots=True)
class Trial:
    """`most` new replicas may stand until the pause is over; None: any.

    `since_ms` is when enough of them were Ready, `ends_ms` when the pause is over; None
    for not yet, and for no pause.
    """

    most: int | None = None
    since_ms: int | None = None
    ends_ms: int | None = None
    rev: str = ""
    """The rev that is on its way; empty without an update."""


NO_TRIAL = Trial()


def trial_of(case: Case, judged: Iterable[Judged], past: UpdateHistory, now_ms: int) -> Trial:
    """The trial of the wanted rev, while replicas of another one stand.

    The wait counts from when the last of so many replicas became Ready. One that is lost
    during the wait starts it anew; once over, it is over for that rev.
    """
    judged = tuple(judged)
    pause = case.spec.update.pause
    if not any(j.outdated for j in judged):
        return NO_TRIAL
    if not pause.duration_ms:
        return Trial(rev=case.rev)
    tried = past.tried_since_ms if past.tried_rev == case.rev else None
    if tried is not None and now_ms >= tried + pause.duration_ms:
        return Trial(since_ms=tried, rev=case.rev)
    found = (j.slot.pod.since_ms for j in judged if j.ready and not j.outdated and j.slot.pod)
    ready = sorted(found)[: pause.after_replicas]
    if len(ready) < pause.after_replicas:
        return Trial(most=pause.after_replicas, rev=case.rev)
    since_ms = tried if tried is not None else min(now_ms, ready[-1])
    ends_ms = since_ms + pause.duration_ms
    if now_ms >= ends_ms:
        return Trial(since_ms=since_ms, rev=case.rev)
    return Trial(pause.after_replicas, since_ms, ends_ms, case.rev)


def held_for_pause(trial: Trial, new_ready: int, old_live: int) -> Hold:
    """The update waits on purpose."""
    assert trial.since_ms is not None
    assert trial.ends_ms is not None
    return Hold(
        "UpdatePaused",
        f"{new_ready} of rev {trial.rev} Ready since {rfc3339(trial.since_ms)}, "
        f"{old_live} of the old rev wait for the end of update.pause",
        f"goes on by itself at {rfc3339(trial.ends_ms)}; a commit that reverts it ends it now",
    )


def held_for_rev(case: Case, past: UpdateHistory, ready: int) -> Hold:
    """The newest rev is blocked, and the service is worked on as it was before."""
    reverts = case.spec.update.on_failure is OnFailure.REVERT
    what = "what failed was removed" if reverts else "what failed stays to be looked at"
    return Hold(
        "UpdateFailed",
        f"{past.blocked_why or f'rev {past.blocked_rev} failed'}; "
        f"{ready} of the old rev still serving; blocked {past.blocked_commit[:7]}",
        f"commit a fix or a revert; until then commit {past.good_commit[:7]} is kept up, {what}",
    )


def parted(case: Case, past: UpdateHistory) -> tuple[Case, tuple[str, ...], bool]:
    """The case without the Deployments of a blocked rev that stay to be looked at, their names,
    and whether one of their replicas is Ready after all.
    """
    if case.spec.update.on_failure is not OnFailure.HOLD:
        return case, (), False
    apart = [p for p in case.state.placements if p.rev == past.blocked_rev and p.node]
    names = {p.name for p in apart}
    kept = tuple(p for p in case.state.placements if p.name not in names)
    serves = any(s.standing is Standing.READY for p in apart for s in slots_of(p))
    state = replace(case.state, placements=kept)
    return replace(case, state=state), tuple(sorted(names)), serves


def learned(
    case: Case, past: UpdateHistory, trial: Trial, *, commit: str, failed: str, whole: bool
) -> UpdateHistory:
    """What is known after a pass that worked on the newest rev.

    `failed` says why the rev is to blame next to an older one; empty when it is not. `whole`:
    as many replicas as are wanted are Ready, all of this rev.
    """
    tried = trial.rev if case.spec.update.pause.duration_ms else ""
    known = replace(past, tried_rev=tried, tried_since_ms=trial.since_ms)
    if failed:
        if past.blocked_rev == case.rev:
            return known
        return replace(known, blocked_rev=case.rev, blocked_commit=commit, blocked_why=failed)
    known = replace(known, blocked_rev="", blocked_commit="", blocked_why="")
    if whole and past.good_rev != case.rev:
        return replace(known, good_rev=case.rev, good_commit=commit)
    return known
