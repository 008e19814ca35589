"""What a child in jail can still do. Runs in processes of its own: jail cannot be left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stoker.render.jail import ON, PARTS, jail_support

ROOT = str(Path(__file__).parents[3] / "controller")
SUPPORT = jail_support()

PROGRAM = """
import json, os, socket, sys
sys.path.insert(0, sys.argv[1])
from stoker.render.jail import JailLimits, enter_jail
os.makedirs(sys.argv[2], exist_ok=True)
parts = enter_jail((os.path.dirname(os.__file__),), JailLimits())
def attempt():
{body}
try:
    attempt()
    said = "done"
except BaseException as error:
    said = type(error).__name__
sys.stdout.write(json.dumps([parts, said]))
"""


def in_jail(body, folder):
    """The answer of a program that goes to jail and tries something."""
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    run = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM.format(body=indented), ROOT, str(folder / "w")],
        capture_output=True,
        check=False,
        timeout=60,
    )
    return json.loads(run.stdout) if run.returncode == 0 else [{}, f"exit {run.returncode}"]


needs = {
    part: pytest.mark.skipif(SUPPORT[part] != ON, reason=f"{part}: {SUPPORT[part]}")
    for part in PARTS
}


def test_every_part_says_whether_it_holds(tmp_path):
    parts, said = in_jail("pass", tmp_path)

    assert "done" == said
    assert SUPPORT == parts


@needs["landlock"]
@pytest.mark.parametrize(
    "body",
    [
        "open('/etc/passwd').read()",
        "os.listdir('/')",
        "os.listdir('/proc')",
        "open(sys.argv[2] + '/x', 'w')",
        "os.mkdir(sys.argv[2] + '/y')",
        "os.symlink('/etc', sys.argv[2] + '/z')",
        "os.remove(sys.argv[1] + '/stoker/errors.py')",
        "open('/var/run/secrets/kubernetes.io/serviceaccount/token')",
        "open('/dev/tty', 'w')",
    ],
)
def test_files_are_out_of_reach(body, tmp_path):
    """Promise R1: no token, no credential, nothing written."""
    said = in_jail(body, tmp_path)[1]

    assert said in {"PermissionError", "FileNotFoundError"}


def test_the_python_installation_can_be_read(tmp_path):
    assert "done" == in_jail("import colorsys", tmp_path)[1]


@needs["seccomp"]
@pytest.mark.parametrize(
    "body",
    [
        "socket.socket()",
        "socket.socket(socket.AF_UNIX)",
        "socket.socketpair()",
        "os.fork()",
        "os.execv(sys.executable, [sys.executable, '-c', 'pass'])",
        "os.posix_spawn(sys.executable, [sys.executable, '-c', 'pass'], {})",
        "os.kill(os.getppid(), 0)",
        "import resource\nresource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)",
        "os.pidfd_open(os.getppid())",
    ],
)
def test_sockets_processes_and_signals_are_refused(body, tmp_path):
    """Promise R1: network system calls fail."""
    assert "PermissionError" == in_jail(body, tmp_path)[1]


@needs["resource-limits"]
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("bytearray(10 ** 9)", "MemoryError"),
        ("[os.dup(1) for _ in range(100)]", "OSError"),
    ],
)
def test_memory_and_descriptors_are_bounded(body, said, tmp_path):
    assert said == in_jail(body, tmp_path)[1]


def test_support_is_asked_without_giving_anything_up(tmp_path):
    (tmp_path / "x").write_text("still here")
    jail_support()

    assert "still here" == (tmp_path / "x").read_text()
    assert set(PARTS) == set(SUPPORT)
