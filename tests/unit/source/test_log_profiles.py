"""Log profiles: the shipped files are right, wrong ones are told by their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.errors import Stalled
from stoker.objects.start_phases import Milestone
from stoker.source import log_profiles
from stoker.source.log_profiles import read_log_profiles, shipped_log_profiles

FOLDER = Path(__file__).resolve().parents[3] / "policies" / "logs"
FILES = sorted(FOLDER.glob("*.yaml"))
WRONG = """\
apiVersion: stoker.dev/v1alpha1
kind: LogProfile
metadata: {name: toy}
spec:
  engine: toy
  images: [toy]
  versionAfter: [version]
  profiles:
    - since: "v1"
      marks:
        - {milestone: Loadedd, texts: [done]}
"""


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_a_shipped_file_has_nothing_wrong(file):
    read = read_log_profiles(file.name, file.read_bytes())

    assert read.findings == ()
    assert file.read_text("utf-8").startswith("# "), "its source is cited"
    for profile in read.profiles:
        told = [Milestone(mark.milestone) for mark in profile.marks]
        assert told == sorted(told, key=list(Milestone).index)
        assert {Milestone.LOADING, Milestone.LOADED, Milestone.SERVING} <= set(told)
        assert profile.since < (profile.before or (10**6,))


def test_a_wrong_file_is_told_by_line_and_column_and_gives_nothing():
    read = read_log_profiles("policies/logs/toy.yaml", WRONG.encode())

    assert () == read.profiles
    assert [
        ("policies/logs/toy.yaml:9:7", "spec.profiles[0].since"),
        ("policies/logs/toy.yaml:11:12", "spec.profiles[0].marks[0].milestone"),
    ] == [(str(f.location), f.field) for f in read.findings]


def test_no_two_shipped_profiles_cover_one_version():
    profiles = shipped_log_profiles()

    assert profiles
    for profile in profiles:
        assert [p for p in profiles if p.engine == profile.engine and p.covers(profile.since)] == [
            profile
        ]


def test_an_installation_without_its_files_knows_no_profile(monkeypatch):
    """`stoker coldstart` then shows the engine as one phase, and says so."""

    def missing(name):
        raise Stalled(f"{name} is missing", code="shipped-files-missing")

    monkeypatch.setattr(log_profiles, "shipped_folder", missing)
    assert () == shipped_log_profiles.__wrapped__()


def test_a_file_that_is_no_text_gives_a_finding():
    assert read_log_profiles("policies/logs/x.yaml", b"\xff\xfe\x00").findings
