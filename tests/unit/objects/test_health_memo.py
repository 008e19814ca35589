from dataclasses import replace

from stoker.cel import Cel
from stoker.model.health_file import HealthCheck
from stoker.model.live import LiveObject
from stoker.model.outcome import Health
from stoker.model.refs import ObjectRef
from stoker.objects.health import health_of
from stoker.objects.health_memo import HealthMemo
from stoker.objects.health_rules import HealthRules


def job(resource_version: str = "1", *, complete: bool = True, uid: str = "u1") -> LiveObject:
    conditions = [{"type": "Complete", "status": "True"}] if complete else []
    body = {"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": conditions}}
    return LiveObject(ObjectRef("batch", "Job", "llm", "x"), uid, resource_version, "", body)


def test_the_verdict_is_the_one_of_the_rules():
    assert health_of(job().body) == HealthMemo().health_of(job())


def test_an_object_that_did_not_change_is_judged_once():
    memo = HealthMemo()
    first = memo.health_of(job())
    memo.end_round()

    assert memo.health_of(job()) is first


def test_a_new_version_is_judged_anew():
    memo = HealthMemo()
    memo.health_of(job())

    assert Health.PROGRESSING is memo.health_of(job("2", complete=False)).status


def test_another_object_of_the_same_name_is_judged_anew():
    memo = HealthMemo()
    memo.health_of(job())

    assert Health.PROGRESSING is memo.health_of(job(complete=False, uid="u2")).status


def test_what_a_round_does_not_ask_for_is_dropped_at_the_next():
    memo = HealthMemo()
    memo.health_of(job())
    memo.end_round()
    memo.end_round()

    assert {} == memo._old | memo._new


def test_an_object_without_uid_is_judged_every_time():
    """Rendered objects of previews have none, and would share one verdict."""
    memo = HealthMemo()
    memo.health_of(replace(job(), uid=""))

    assert Health.PROGRESSING is memo.health_of(replace(job(complete=False), uid="")).status


def rules(current: str) -> HealthRules:
    return HealthRules(Cel(), [HealthCheck("batch", "Job", "job.yaml", current=current)])


def test_other_health_files_judge_everything_anew():
    """A commit that mends a health file changes no object's version."""
    memo = HealthMemo()
    assert Health.PROGRESSING is memo.health_of(job(), rules("false")).status

    assert Health.HEALTHY is memo.health_of(job(), rules("true")).status


def test_the_same_health_files_judge_nothing_anew():
    memo = HealthMemo()
    first = memo.health_of(job(), rules("true"))

    assert memo.health_of(job(), rules("true")) is first
