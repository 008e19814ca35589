"""The milestones that an engine's log tells, under the log profile of its version.

In: lines as `kubectl logs --timestamps` gives them, and the profiles. Out: the profile
that fits, and an instant for each milestone it found. Lines without an instant of their
own tell nothing. Called by start_facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stoker.model.log_profile import LogProfile
from stoker.model.times import instant_of
from stoker.objects.start_phases import Milestone

__all__ = ["EngineLog", "read_log", "version_of"]

VERSION_LINES = 200
"""An engine names its version among its first lines."""
LONGEST_LINE = 4_000
"""Characters of a line that are looked at: a start line has its words at the front."""
_VERSION = re.compile(r"v?([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})(?![0-9])")


@dataclass(frozen=True, slots=True)
class EngineLog:
    """What a log told. Empty `instants` say nothing about the engine; `why` is then for people.

    `engine` and `version` are as the log or the image name them, empty where neither does.
    """

    engine: str = ""
    version: str = ""
    instants: tuple[tuple[Milestone, int], ...] = ()
    why: str = ""


def read_log(lines: Sequence[str], image: str, profiles: Iterable[LogProfile]) -> EngineLog:
    """Read the log of one run of the engine whose container has that image.

    The version of the log itself is believed first, then the tag of the image.
    """
    profiles = tuple(profiles)
    known = [each for each in profiles if any(part in image for part in each.images)] or profiles
    engine, version = _told_version(lines, known)
    if not engine:
        engine = known[0].engine if known and known != profiles else ""
        version = _tag(image) if engine else ""
    if not lines:
        return EngineLog(engine, version, why="no log was read")
    if not engine:
        return EngineLog(why="no log profile knows this engine")
    fitting = (each for each in known if each.engine == engine and each.covers(version_of(version)))
    profile = next(fitting, None)
    if profile is None:
        told = f"version {version} of {engine}" if version else f"an unnamed version of {engine}"
        return EngineLog(engine, version, why=f"no log profile for {told}")
    instants = _instants(lines, profile)
    why = "" if instants else "no line of the log with an instant tells a phase"
    return EngineLog(engine, version, instants, why)


def version_of(text: str) -> tuple[int, ...]:
    """`v0.28.0` as (0, 28, 0); empty for anything else."""
    found = _VERSION.match(text)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def _told_version(lines: Sequence[str], profiles: Iterable[LogProfile]) -> tuple[str, str]:
    """Engine and version by the log's own words."""
    for line in lines[:VERSION_LINES]:
        for profile in profiles:
            for words in profile.version_texts:
                _, found, rest = line[:LONGEST_LINE].partition(words)
                if found and version_of(rest):
                    return profile.engine, rest.split()[0].strip("()").removeprefix("v")
    return "", ""


def _tag(image: str) -> str:
    """The tag of an image reference, without the leading v; empty where it has none."""
    name = image.partition("@")[0].rpartition("/")[2]
    return name.partition(":")[2].removeprefix("v")


def _instants(lines: Sequence[str], profile: LogProfile) -> tuple[tuple[Milestone, int], ...]:
    found: dict[Milestone, int] = {}
    for line in lines:
        stamp, _, text = line[:LONGEST_LINE].partition(" ")
        for mark in profile.marks:
            milestone = Milestone(mark.milestone)
            if (mark.last or milestone not in found) and any(part in text for part in mark.texts):
                ms = instant_of(stamp)
                if ms is not None:
                    found[milestone] = ms
        if Milestone.SERVING in found:
            break  # what follows is work: a sleeping engine loads its weights again
    return tuple((each, found[each]) for each in Milestone if each in found)
