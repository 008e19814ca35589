"""/readyz says no for what is wrong here, and names it; not for what others do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stoker.cli.readiness import ReadinessOf


def ready_when(git: str = "ok", signals: Any = None, **loop: Any):
    """A controller whose parts are well, but for what a test says."""
    parts: dict[str, Any] = {
        "observer": SimpleNamespace(status=lambda: ()),
        "poller": SimpleNamespace(last_answer=git, alive=True),
        "publisher": SimpleNamespace(written=SimpleNamespace(code=""), alive=True),
        "loop": SimpleNamespace(
            **{"last_pass_ended": 1.0, "is_warm": False, "leads": True, **loop}
        ),
    }
    return ReadinessOf(**parts, keeper=None, signals=signals)()


@pytest.mark.parametrize("git", ["disk-full", "state-folder-unusable"])
def test_a_state_folder_that_takes_no_writes_is_not_ready(git):
    """reliability-security c.1 rows 10 and 11: false, with the reason."""
    good, parts = ready_when(git)

    assert not good
    assert git == parts["git"]


@pytest.mark.parametrize("git", ["ok", "repository-unreachable", "repository-denied"])
def test_a_git_host_that_is_away_leaves_it_ready(git):
    """reliability-security c.3 row 56: the last good state is at work."""
    good, parts = ready_when(git)

    assert good
    assert git == parts["git"]


def test_before_its_first_pass_nothing_is_ready():
    good, parts = ready_when(last_pass_ended=0.0)

    assert not good
    assert "not yet" == parts["pass"]


@pytest.mark.parametrize("trouble", ["", "its thread ended"])
def test_signals_that_cannot_be_measured_leave_it_ready_and_are_told(trouble):
    """Counts hold meanwhile; another replica of the controller would measure no better."""
    good, parts = ready_when(signals=SimpleNamespace(trouble=trouble))

    assert good
    assert trouble == parts.get("signals", "")
