from __future__ import annotations

import pytest

from stoker.source import SourceMemo


@pytest.fixture
def memo():
    return SourceMemo()
