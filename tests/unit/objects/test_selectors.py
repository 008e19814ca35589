"""Selectors mean what they mean to kubectl."""

import pytest

from stoker.objects.selectors import parse_selector, selector_text

LABELS = {"app": "x", "tier": "web", "empty": "", "a.b/c": "1"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=x", True),
        ("app==x", True),
        ("app=y", False),
        ("app!=y", True),
        ("app!=x", False),
        ("gone!=x", True),
        ("empty=", True),
        ("a.b/c=1", True),
        ("app", True),
        ("gone", False),
        ("!gone", True),
        ("!app", False),
        ("app in (x,y)", True),
        ("app in (y, z)", False),
        ("app notin (y)", True),
        ("gone notin (y)", True),
        ("app=x,tier in (web,db),!gone", True),
        ("app=x,tier=db", False),
    ],
)
def test_what_matches(text, matches):
    assert matches == parse_selector(text).matches(LABELS)


def test_no_labels_are_no_labels():
    assert parse_selector("!app").matches(None)
    assert not parse_selector("app").matches(None)


@pytest.mark.parametrize("text", ["app~x", "=x", "app in x", "app in (x", "a=b=c", "app x"])
def test_what_is_no_selector_is_refused(text):
    """A rule that silently matched everything would ignore too much."""
    with pytest.raises(ValueError, match="no requirement"):
        parse_selector(text)


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param({}, "", id="nothing"),
        pytest.param({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2", id="labels"),
        pytest.param(
            {
                "matchExpressions": [
                    {"key": "c", "operator": "NotIn", "values": ["y", "x"]},
                    {"key": "d", "operator": "Exists"},
                    {"key": "e", "operator": "DoesNotExist"},
                ]
            },
            "!e,c notin (x,y),d",
            id="expressions",
        ),
    ],
)
def test_a_manifests_selector_in_one_line(selector, text):
    """What autoscalers read from a scale subresource; it reads back as a selector."""
    found = selector_text(selector)

    assert sorted(text.split(",")) == sorted(found.split(","))
    parse_selector(found)
