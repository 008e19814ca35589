"""The publisher: commits the newest status to its branch, on a thread of its own.

In: a Submission after each pass, by `offer`, which never waits for Git. A push that fails
is retried with back-off and shown by `written`; it never delays a pass. Nothing is
committed when nothing of substance changed (cases.md rows 13 and 99).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from stoker.errors import Finding, StokerError
from stoker.log import get_log
from stoker.model.fleet import SnapshotDetail
from stoker.model.ports import Clock, Repo
from stoker.report.inputs import Report, StatusWritten
from stoker.report.plain_yaml import Dumper
from stoker.report.previous import STATUS_PATH, PreviousStatus, previous_from_files
from stoker.report.publish_message import status_message
from stoker.report.publish_records import RecordPublisher
from stoker.report.publish_when import BackOff, PublishState, due_at
from stoker.report.records import DecisionInputs

__all__ = ["Publisher", "Submission"]

_log = get_log("publish")

LONGEST_WAIT = 60.0
"""Seconds after which the thread looks again, whatever happens."""
MAX_DECISIONS = 20
"""Decisions kept while Git does not answer; older ones go unrecorded."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What one pass wants published, and how. `branch` has no refs/heads/."""

    report: Report
    fleet_name: str
    branch: str
    flush_interval_ms: int = 60_000
    heartbeat_ms: int = 3_600_000
    detail: SnapshotDetail = SnapshotDetail.FULL
    decision: DecisionInputs | None = None


@dataclass(slots=True)
class _Branch:
    """What stands on the status branch as far as it is ours; None = not read yet."""

    name: str = ""
    files: dict[str, bytes] | None = None


class Publisher:
    """Publishes until stopped. `turn` is what its thread does, callable from tests.

    `count` is told `pushed`, `failed` or `bug` once each, for metrics. `on_change` is called on
    the publisher's thread when the branch or the data ref begins or ceases to take our commits:
    only another pass can tell.
    """

    def __init__(
        self,
        repo: Repo,
        clock: Clock,
        *,
        version: str,
        fleet_id: str,
        count: Callable[[str], None] = lambda _result: None,
    ) -> None:
        self._repo = repo
        self._clock = clock
        self._count = count
        self.on_change: Callable[[], None] = lambda: None
        self._fleet_id = fleet_id
        self._records = RecordPublisher(repo, clock, version=version, fleet_id=fleet_id)
        self._news = threading.Condition()
        self._turning = threading.Lock()
        self._newest: Submission | None = None
        self._decisions: tuple[DecisionInputs, ...] = ()
        self._state = PublishState()
        self._written = StatusWritten()
        self._records_failed: Finding | None = None
        self._flush_wanted = 0
        self._flush_seen = 0
        self._flush_done = 0
        self._poked = False
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._branch = _Branch()
        self._forgotten = False
        self._dumper = Dumper()
        self._back_off = BackOff()

    # -------------------------------------------------- called by the reconciler
    def read_previous(self, branch: str) -> PreviousStatus:
        """What the branch says now, once at the start; raises the error tree."""
        previous = self._read_branch(branch)
        with self._news:
            self._state = PublishState(
                published=previous.substance,
                committed_at=self._committed_at(previous),
            )
        return previous

    def offer(self, submission: Submission) -> None:
        """Hand over the newest documents; an older submission that waits is replaced."""
        with self._news:
            self._newest = submission
            self._state = PublishState(
                published=self._state.published,
                offered=submission.report.substance,
                urgent=self._state.urgent or submission.report.urgent,
                newer=True,
                committed_at=self._state.committed_at,
                retry_at=self._state.retry_at,
            )
            self._decisions = _with_decision(self._decisions, submission)
            self._poke()

    def forget(self) -> None:
        """Read the branch again before the next commit: another controller may have written.

        What waits to be published is dropped, for it is older than what that one may say.
        """
        with self._news:
            self._forgotten = True
            self._newest, self._decisions = None, ()
            self._written = replace(self._written, code="", message="")
            self._state = replace(self._state, published="")

    @property
    def written(self) -> StatusWritten:
        """How the branch stands, for the condition StatusWritten and the last pushed commit."""
        with self._news:
            return self._written

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What is wrong with the data ref; it never makes the status fail."""
        with self._news:
            return (self._records_failed,) if self._records_failed is not None else ()

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Publish on a thread of its own; again after it died."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        self._thread.start()

    def flush(self, deadline_seconds: float) -> bool:
        """Publish now what changed, waiting at most that long; whether the branch is up to date.

        Has a deadline of its own, so a pass that ran out of time still reports (row 95).
        """
        with self._news:
            self._flush_wanted += 1
            mine = self._flush_wanted
            self._poke()
        if not self.alive:
            self.start()
        with self._news:
            done = self._news.wait_for(lambda: self._flush_done >= mine, timeout=deadline_seconds)
            return done and not self._written.code

    def stop(self) -> None:
        """Ask the thread to end; a push in flight is ended by Git's own limits."""
        with self._news:
            self._stopping = True
            self._poke()

    def _poke(self) -> None:
        self._poked = True
        self._news.notify_all()

    # -------------------------------------------------- the publisher's own thread
    def turn(self) -> float | None:
        """Publish if it is time; seconds until the next look, None = when something comes."""
        with self._turning:
            with self._news:
                submission, state = self._newest, self._state
                self._flush_seen = self._flush_wanted
                force = self._flush_seen > self._flush_done
                decisions = self._decisions
            if submission is None:
                self._end_of_flush()
                return None
            now = self._clock.monotonic()
            due = due_at(state, submission.flush_interval_ms / 1e3, submission.heartbeat_ms / 1e3)
            forced = force and state.newer and state.offered != state.published
            if not forced and (due is None or due > now):
                self._end_of_flush()
                return None if due is None else due - now
            self._publish(submission, decisions)
            self._end_of_flush()
            return 0.0

    def _run(self) -> None:
        while not self._stopping:
            try:
                wait = self.turn()
            except Exception:  # noqa: BLE001 - the top of a thread is one of the boundaries
                _log.exception("publish.crashed")
                self._count("bug")
                self._failed("bug", "the publisher met a bug; see its log")
                self._end_of_flush()
                wait = None
            with self._news:
                if not self._poked:
                    self._news.wait(LONGEST_WAIT if wait is None else min(wait, LONGEST_WAIT))
                self._poked = False

    def _end_of_flush(self) -> None:
        """Let go whoever had asked for a flush before this turn began."""
        with self._news:
            self._flush_done = self._flush_seen
            self._news.notify_all()

    def _publish(self, submission: Submission, decisions: tuple[DecisionInputs, ...]) -> None:
        branch = submission.branch
        try:
            if self._forgotten or self._branch.name != branch or self._branch.files is None:
                self._read_branch(branch)
            files = self._changed_files(submission)
            status = submission.report.documents[0].data
            message = status_message(status, submission.fleet_name, self._fleet_id)
            result = self._repo.commit_files(f"refs/heads/{branch}", files, message)
        except StokerError as error:
            self._failed(error.code, error.message, branch)
            return
        if result.rejected:
            self._failed("push-rejected", result.rejected, branch)
            return
        self._succeeded(submission, files, result.commit, pushed=result.pushed)
        whose, newest = (submission.fleet_name, submission.detail), submission.decision
        failed = self._records.publish(*whose, decisions, newest)
        with self._news:
            before, self._records_failed = self._records_failed, failed
            self._decisions = self._decisions[len(decisions) :] if failed is None else ()
        if (before is None) is not (failed is None):
            self.on_change()

    def _changed_files(self, submission: Submission) -> dict[str, bytes | None]:
        """Only what differs from the branch; a file of a unit that is gone comes as None."""
        standing = self._branch.files or {}
        report = submission.report
        wanted = {d.path: self._dumper.dump(d.path, d.data) for d in report.documents}
        files: dict[str, bytes | None] = {
            path: content for path, content in wanted.items() if standing.get(path) != content
        }
        if report.complete:
            for path in sorted(set(standing) - set(wanted)):
                files[path] = None
                self._dumper.forget(path)
        return files

    def _read_branch(self, branch: str) -> PreviousStatus:
        """Read the branch; of files below units/, only those that are a unit's are ours."""
        files = self._repo.read_branch(f"refs/heads/{branch}")
        self._forgotten = False
        previous = previous_from_files(files)
        ours = {STATUS_PATH} | {document.path for document in previous.documents.values()}
        self._branch = _Branch(branch, {path: files[path] for path in sorted(ours & set(files))})
        return previous

    def _committed_at(self, previous: PreviousStatus) -> float | None:
        """The instant of the last commit on the monotonic clock, by the status' own word."""
        if previous.observed_at_ms is None:
            return None
        age = max(0, self._clock.now_ms() - previous.observed_at_ms) / 1000
        return self._clock.monotonic() - age

    def _succeeded(
        self,
        submission: Submission,
        files: Mapping[str, bytes | None],
        commit: str,
        *,
        pushed: bool,
    ) -> None:
        standing = self._branch.files if self._branch.files is not None else {}
        for path, content in files.items():
            if content is None:
                standing.pop(path, None)
            else:
                standing[path] = content
        self._branch = _Branch(submission.branch, standing)
        self._back_off.worked()
        if pushed:
            self._count("pushed")
            _log.info(
                "status.pushed", commit=commit[:7], branch=submission.branch, files=len(files)
            )
        with self._news:
            newest = self._newest is submission
            self._state = PublishState(
                published=submission.report.substance,
                offered=self._state.offered,
                urgent=False if newest else self._state.urgent,
                newer=not newest,
                committed_at=self._clock.monotonic(),
            )
        self._note(StatusWritten(submission.branch, commit, self._clock.now_ms()))

    def _failed(self, code: str, message: str, branch: str = "") -> None:
        wait = self._back_off.failed()
        self._count("failed")
        _log.warning("status.failed", code=code, message=message, retry_seconds=wait)
        with self._news:
            state, written = self._state, self._written
            self._state = PublishState(
                state.published,
                state.offered,
                state.urgent,
                state.newer,
                state.committed_at,
                retry_at=self._clock.monotonic() + wait,
            )
        self._note(
            StatusWritten(
                branch or written.branch, written.commit, written.pushed_at_ms, code, message
            )
        )

    def _note(self, written: StatusWritten) -> None:
        with self._news:
            before, self._written = self._written, written
        if (before.code, bool(before.commit)) != (written.code, bool(written.commit)):
            self.on_change()


def _with_decision(
    waiting: tuple[DecisionInputs, ...], submission: Submission
) -> tuple[DecisionInputs, ...]:
    """Add the decision unless it is the one that waits already."""
    call = submission.decision
    digest = str(submission.report.documents[0].data["decisionDigest"]).removeprefix("sha256:")
    if call is None or not digest or (waiting and waiting[-1].digest == digest):
        return waiting
    return (*waiting, replace(call, digest=digest))[-MAX_DECISIONS:]
