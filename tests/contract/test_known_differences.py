"""Every known difference is still one; see known_differences.py."""

from __future__ import annotations

import pytest

from contract.known_differences import DIFFERENCES


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.name)
def test_the_difference_is_as_described(server, difference):
    expected = difference.real if server.real else difference.memory

    assert difference.ask(server) == expected, difference.why


def test_differences_differ():
    assert all(difference.memory != difference.real for difference in DIFFERENCES)
