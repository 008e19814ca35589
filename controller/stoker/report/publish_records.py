"""Commits decision records to the data ref. What fails is lost, and never status' trouble.

In: the decisions since the last call. Called by publish on its thread.
"""

from __future__ import annotations

from stoker.errors import Finding, Severity, SourceLocation, StokerError
from stoker.log import get_log
from stoker.model.fleet import SnapshotDetail
from stoker.model.ports import Clock, Repo
from stoker.report.records import DecisionInputs, RecordBook
from stoker.report.starts_copy import StartsCopy

__all__ = ["RecordPublisher"]

_log = get_log("records")


class RecordPublisher:
    """Writes `refs/stoker/<fleet>`; for one thread."""

    def __init__(self, repo: Repo, clock: Clock, *, version: str, fleet_id: str) -> None:
        self._repo = repo
        self._clock = clock
        self._book = RecordBook(version, fleet_id)
        self._starts = StartsCopy()
        self._remembered = ""

    def publish(
        self,
        fleet_name: str,
        detail: SnapshotDetail,
        decisions: tuple[DecisionInputs, ...],
        newest: DecisionInputs | None = None,
    ) -> Finding | None:
        """Commit what is new of these decisions; a finding when the ref refuses it.

        `newest` is the last call of decide, whether or not it decided something else.
        """
        ref = f"refs/stoker/{fleet_name}"
        try:
            if self._remembered != ref:
                self._book.remember(self._repo.read_branch(ref, "records/"))
                self._remembered = ref
            files: dict[str, bytes | None] = {}
            for call in decisions:
                files |= self._book.files(call, detail, self._clock.now_ms())
            files |= self._starts.files(newest, detail, self._clock.now_ms())
            if not files:
                return None
            digests = ", ".join(call.digest[:7] for call in decisions if call.digest)
            title = f"decision: {digests}" if digests else "starts"
            result = self._repo.commit_files(ref, files, f"{title}  [skip ci]\n")
        except StokerError as error:
            return self._lost(ref, error.code, error.message)
        return self._lost(ref, "push-rejected", result.rejected) if result.rejected else None

    def _lost(self, ref: str, code: str, message: str) -> Finding:
        self._book.forget()
        self._starts.forget()
        _log.warning("records.failed", code=code, message=message)
        return Finding(
            SourceLocation(),
            "records-not-written",
            f"{ref}: {message} [{code}]",
            severity=Severity.WARNING,
        )
