"""What the caches tell the next pass, once."""

from __future__ import annotations

from stoker.model.refs import ObjectRef, UnitRef
from stoker.observe.external import ScaleTarget
from stoker.observe.news import MOST, News, NewsDesk
from stoker.observe.projection import Entry
from stoker.observe.store import Changed

UNIT = UnitRef("Bundle", "llm", "side")


def an_entry(name: str, unit: UnitRef | None = None, facts: ScaleTarget | None = None) -> Entry:
    """A cached ConfigMap."""
    ref = ObjectRef("", "ConfigMap", "llm", name)
    return Entry("llm", name, "u", "1", "", unit, False, facts, b"{}", ref)


def test_what_stood_before_and_what_stands_now_is_news():
    """An object that went is news as one that came."""
    desk = NewsDesk()
    desk.changed([Changed(an_entry("gone"), None), Changed(None, an_entry("came"))])
    assert {ref.name for ref in desk.take().refs} == {"gone", "came"}


def test_news_is_told_once():
    """The pass that asked looks at it."""
    desk = NewsDesk()
    desk.touched(ObjectRef("", "Service", "llm", "x"))
    assert desk.take().refs
    assert desk.take() == News()


def test_an_object_that_bore_our_mark_is_told_apart():
    """One that no unit claims is an orphan, also when somebody has just taken the mark off."""
    desk = NewsDesk()
    desk.changed([Changed(an_entry("ours", UNIT), an_entry("ours"))])
    desk.changed([Changed(None, an_entry("theirs"))])
    assert {ref.name for ref in desk.take().marked} == {"ours"}


def test_an_autoscaler_is_news_of_its_target():
    """Its target's count is judged otherwise though nothing of it changed."""
    desk = NewsDesk()
    target = ScaleTarget("apps", "Deployment", "llm", "served", "HorizontalPodAutoscaler/x")
    desk.changed([Changed(None, an_entry("x", facts=target))])
    assert ObjectRef("apps", "Deployment", "llm", "served") in desk.take().refs


def test_too_much_news_is_everything():
    """Nothing is left out and nothing grows without end."""
    desk = NewsDesk()
    for number in range(MOST + 5):
        desk.touched(ObjectRef("", "ConfigMap", "llm", str(number)))
    assert desk.take().everything
    assert not desk.take().everything
