import re

import pytest

from stoker.errors import Refused, Retryable, Stalled, StokerError, Waiting
from stoker.kube import errors as kube_errors
from stoker.model.outcome import Condition, Health, Sync
from stoker.report.conditions import (
    Judgement,
    Reason,
    camel,
    conditions_of,
    is_retryable,
    with_times,
)

MODULES = {"stoker.errors", kube_errors.__name__}


def classes_below(root: type[StokerError]) -> list[type[StokerError]]:
    found = [root]
    for child in root.__subclasses__():
        found += classes_below(child)
    return [cls for cls in found if cls.__module__ in MODULES]


@pytest.mark.parametrize("error", [*classes_below(Retryable), *classes_below(Waiting)])
def test_what_may_pass_by_itself_never_stalls(error):
    """The code is all that is left of an error when report sees it."""
    assert is_retryable(error.code)


@pytest.mark.parametrize("error", [*classes_below(Stalled), *classes_below(Refused)])
def test_what_a_person_must_fix_is_never_called_passing(error):
    assert not is_retryable(error.code)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("template-undefined", "TemplateUndefined"),
        ("HeldNoCapacity", "HeldNoCapacity"),
        ("bug", "Bug"),
        ("a--b", "AB"),
    ],
)
def test_a_code_becomes_a_reason(code, reason):
    assert reason == camel(code)


@pytest.mark.parametrize("reason", list(Reason))
def test_reasons_are_what_kubernetes_takes(reason):
    """The pattern of metav1.Condition.reason."""
    assert re.fullmatch(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", reason)


@pytest.mark.parametrize("sync", list(Sync))
@pytest.mark.parametrize("health", list(Health))
@pytest.mark.parametrize("stalled", ["", "BadInput"])
@pytest.mark.parametrize("retrying", ["", "ProgressingWithRetry"])
def test_conditions_never_contradict_each_other(sync, health, stalled, retrying):
    judgement = Judgement(sync, health, "Why", stalled=stalled, retrying=retrying)

    ready, reconciling, is_stalled, healthy = conditions_of(judgement, (), 0)

    well = sync is Sync.SYNCED and health in {Health.HEALTHY, Health.SUSPENDED}
    assert (ready.status == "True") == (well and not stalled)
    assert (is_stalled.status == "True") == bool(stalled)
    assert (healthy.status == "Unknown") == (health is Health.UNKNOWN)
    if ready.status == "True" and not retrying:
        assert reconciling.status == "False"


def test_a_message_that_nobody_would_read_is_cut():
    draft = Condition("Ready", "False", "X", "m" * 5_000, "")

    assert 512 == len(with_times((draft,), (), 0)[0].message)


def test_a_condition_without_a_time_starts_now():
    """A person may have taken the time out of the file on the branch."""
    draft = Condition("Ready", "False", "X", "", "")

    assert "1970-01-01T00:00:00Z" == with_times((draft,), (draft,), 0)[0].since
