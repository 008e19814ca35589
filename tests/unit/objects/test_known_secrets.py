"""Secrets by value: whatever form a message cites them in (reliability-security.md b, row 20)."""

from __future__ import annotations

import base64
import json

import pytest

from stoker.objects.known_secrets import joined, known_secrets

LONG, SHORT, QUOTES = "canary-5f1d-a9", "hunt3r2", 'a "b" <c> & d\n\te'


def secret(**values: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Secret", "stringData": values}


KNOWN = known_secrets([secret(long=LONG, short=SHORT, quotes=QUOTES)])


def as_go_writes(text: str) -> str:
    """encoding/json, which escapes what HTML would read."""
    escaped = json.dumps(text)
    for mark in "<>&":
        escaped = escaped.replace(mark, f"\\u{ord(mark):04x}")
    return escaped


@pytest.mark.parametrize("value", [LONG, SHORT, QUOTES])
@pytest.mark.parametrize(
    "cite",
    [
        pytest.param(json.dumps, id="quoted"),
        pytest.param(lambda value: f"'{value}'", id="in single quotes"),
        pytest.param(lambda value: f'{{"data":{as_go_writes(value)}}}', id="within JSON"),
        pytest.param(lambda value: base64.b64encode(value.encode()).decode(), id="base64"),
    ],
)
def test_a_value_is_hidden_however_it_is_cited(value, cite):
    told = KNOWN.hide_text(f"spec.x: Invalid value: {cite(value)}: must be no more than 3")

    assert value not in told
    assert cite(value) not in told
    assert "***" in told
    assert told.startswith("spec.x: Invalid value: ")
    assert told.endswith(": must be no more than 3")


def test_a_long_value_is_hidden_inside_a_text_too():
    assert "postgres://u:***@db/x" == KNOWN.hide_text(f"postgres://u:{LONG}@db/x")


def test_short_words_stay_where_nothing_cites_them():
    known = known_secrets([secret(word="pods", flag="true")])

    assert "3 pods are true" == known.hide_text("3 pods are true")
    assert 'got "***" and "true"' == known.hide_text('got "pods" and "true"')


def test_what_several_units_keep_is_hidden_together():
    both = joined([known_secrets([secret(a=LONG)]), known_secrets([secret(b=SHORT)])])

    assert '*** and "***"' == both.hide_text(f'{LONG} and "{SHORT}"')
