"""The process of the command line: its collector is off where it has nothing to find."""

import pytest

from children import run_python
from stoker.__main__ import is_one_pass

_SCRIPT = """
import atexit, gc, sys
from stoker.__main__ import main
atexit.register(lambda: sys.stderr.write(f"\\n@@@{gc.isenabled()} {gc.get_freeze_count() > 0}"))
main()
"""


def at_exit(*arguments):
    """Whether the collector is on and objects are frozen when the process ends."""
    done = run_python(_SCRIPT, *arguments)
    return done.returncode, done.stderr.rpartition("@@@")[2]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run --once --repo x", True),
        ("run --repo x --once", True),
        ("diff", True),
        ("--debug plan", True),
        ("run --repo x", False),
        ("demo", False),
        ("dev cluster --once", False),
        ("apply", False),
        ("", False),
    ],
)
def test_only_what_ends_with_its_first_pass_does_without_the_collector(line, expected):
    """A controller lives for months, and `apply` may wait for hours."""
    assert is_one_pass(line.split()) is expected


@pytest.mark.parametrize(
    ("arguments", "collects"), [(("run", "--once"), False), (("run",), True)], ids=("once", "long")
)
def test_a_process_ends_without_looking_at_all_its_objects_again(arguments, collects):
    """Both lack --repo, so they end at once, with the code of wrong use."""
    assert at_exit(*arguments) == (2, f"{collects} True")
