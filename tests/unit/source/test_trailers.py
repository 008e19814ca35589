from __future__ import annotations

import pytest

from stoker.source.trailers import allowed_deletes


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Remove\n\nStoker-Allow-Delete: ModelService/llm/a", ("ModelService/llm/a",)),
        ("Remove\n\nWhy.\n\nStoker-Allow-Delete: all\nSigned-off-by: A <a@b>\n", ("all",)),
        ("x\n\nstoker-allow-delete: b, a b", ("a", "b")),
        ("x\n\nStoker-Allow-Delete: a\nStoker-Allow-Delete: b", ("a", "b")),
        ("x\n\nStoker-Allow-Delete: a\n  b", ("a", "b")),
        ("x\n\nStoker-Allow-Delete: a\n\nCo-authored-by: B <b@c>", ("a",)),
        ("x\r\n\r\nStoker-Allow-Delete: a\r\n", ("a",)),
        ("Stoker-Allow-Delete: all", ()),
        ("x\n\nStoker-Allow-Delete: all\n\nOn second thought, no.", ()),
        ("x\n\nNever write\nStoker-Allow-Delete: all", ()),
        ("x\n\n> Stoker-Allow-Delete: all", ()),
        ("x\n\nOther: all", ()),
        ("", ()),
    ],
)
def test_consent_is_a_trailer_and_nothing_else(message, expected):
    assert expected == allowed_deletes(message)
