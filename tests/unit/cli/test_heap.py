"""Asking for few heaps is safe wherever the controller runs."""

import ctypes
import platform
import subprocess
import sys

from stoker.cli import heap


def test_glibc_takes_it():
    script = "from stoker.cli.heap import share_heaps; print(share_heaps())"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert str(platform.libc_ver()[0] == "glibc") == done.stdout.strip()


def test_another_allocator_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())

    assert not heap.share_heaps()
