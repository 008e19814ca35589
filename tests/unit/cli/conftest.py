"""A shell for the tests of commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.cli.shell import Shell, shell_in


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    """Commands in an empty home, without a cluster."""
    with shell_in(tmp_path, capsys) as found:
        yield found
