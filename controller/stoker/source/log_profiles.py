"""Log profiles: policies/logs/*.yaml that ship with Stoker.

Bytes in, profiles and findings out. Called by the command line, once a command.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from stoker.errors import Finding, Stalled
from stoker.model.log_profile import LogMark, LogProfile
from stoker.shipped import shipped_folder
from stoker.source.parsed import parsed
from stoker.source.schema_logs import LogProfileFile, ProfileBlock
from stoker.source.unit_file import unusable
from stoker.source.yaml_strict import read_yaml

__all__ = ["LogFile", "read_log_profiles", "shipped_log_profiles"]


@dataclass(frozen=True, slots=True)
class LogFile:
    """The profiles of one file in its order, and what is wrong with it."""

    profiles: tuple[LogProfile, ...] = ()
    findings: tuple[Finding, ...] = ()


def read_log_profiles(path: str, data: bytes) -> LogFile:
    """Read one file; of a wrong document nothing is used. Never raises."""
    problem = unusable(path, data)
    if problem is not None:
        return LogFile(findings=(problem,))
    file = read_yaml(path, data)
    findings = [file.broken] if file.broken is not None else []
    profiles: list[LogProfile] = []
    for document in file.documents:
        findings += document.findings
        found, problems = parsed(document, LogProfileFile, "LogProfile")
        findings += problems
        if found is not None:
            profiles += (_profile(path, found, block) for block in found.spec.profiles)
    return LogFile(tuple(profiles), tuple(findings))


@lru_cache(maxsize=1)
def shipped_log_profiles() -> tuple[LogProfile, ...]:
    """The profiles that come with Stoker, by file name; none where the installation lacks them."""
    try:
        folder = shipped_folder("policies") / "logs"
    except Stalled:
        return ()
    return tuple(
        profile
        for file in sorted(folder.glob("*.yaml"))
        for profile in read_log_profiles(f"policies/logs/{file.name}", file.read_bytes()).profiles
    )


def _profile(path: str, file: LogProfileFile, block: ProfileBlock) -> LogProfile:
    return LogProfile(
        engine=file.spec.engine,
        since=_numbers(block.since),
        before=_numbers(block.before),
        images=tuple(file.spec.images),
        version_texts=tuple(file.spec.version_after),
        marks=tuple(LogMark(mark.milestone, tuple(mark.texts), mark.last) for mark in block.marks),
        path=path,
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")) if version else ()
