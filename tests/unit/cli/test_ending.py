"""A signal at any moment from the first on ends the controller cleanly."""

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal
from types import SimpleNamespace
from stoker.cli.ending import Ending
from stoker.clock import SystemClock

calls = []
loop = SimpleNamespace(stop=lambda: calls.append("stop"))
publisher = SimpleNamespace(flush=lambda seconds: calls.append("flush"))
ending = Ending(SystemClock())
ending.listen()
before, number = {before}, signal.{signal}
if before:
    os.kill(os.getpid(), number)
ending.attach(loop, publisher)
print("at once" if calls else "works")
if not before:
    os.kill(os.getpid(), number)
print(*calls)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize(("before", "said"), [(True, "at once"), (False, "works")])
def test_a_signal_stops_the_loop_even_if_it_came_before_it(name, before, said):
    """Between the lease and the loop a signal used to end the process with the lease held."""
    script = SCRIPT.format(before=before, signal=name)

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout.split("\n")[:2]) == (0, [said, "stop"]), done.stderr
