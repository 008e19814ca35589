"""Runs the git program: fixed arguments in, its answer out, whole process group killed late.

The child sees nothing of our environment, of the system's or a user's configuration, and
can neither prompt nor run hooks. Everything else in this folder goes through here.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stoker.clock import SystemClock
from stoker.errors import Retryable, Stalled, Unreachable
from stoker.git.pipes import TooMuch, converse

__all__ = ["Answer", "Git", "RunLimits", "kill_group"]

REAP_SECONDS = 5
"""How long a killed child is waited for; only a stuck kernel needs longer."""
STANDARD_FOLDERS = "/usr/local/bin:/usr/bin:/bin"

FIXED_CONFIG: tuple[tuple[str, str], ...] = (
    ("advice.detachedHead", "false"),
    ("core.askPass", ""),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.untrackedCache", "false"),
    ("credential.helper", ""),
    ("fastimport.unpackLimit", "100"),
    ("fetch.fsckObjects", "true"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.unpackLimit", "1"),
    ("fetch.writeCommitGraph", "false"),
    ("gc.auto", "0"),
    ("http.followRedirects", "false"),
    ("init.defaultBranch", "unused"),
    ("maintenance.auto", "false"),
    ("pack.threads", "2"),
    ("protocol.version", "2"),
    ("submodule.recurse", "false"),
    ("transfer.bundleURI", "false"),
    ("transfer.fsckObjects", "true"),
)
"""Given by environment, so that it outranks the configuration of a local repository."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Bounds of git children. Seconds of wall time, bytes of memory and of one file."""

    local_seconds: float = 60.0
    network_seconds: float = 60.0
    first_fetch_seconds: float = 600.0
    lock_seconds: float = 90.0
    low_speed_bytes: int = 1000
    low_speed_seconds: int = 30
    address_space_bytes: int = 8 * 2**30
    file_bytes: int = 2 * 2**30
    answer_bytes: int = 256 * 2**20
    """What a command may print: two million files of a listing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a command ended. `errors` is stderr as text, in English."""

    status: int
    out: bytes
    errors: str

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.status == 0


class Git:
    """The git program with one environment. `folder` becomes its empty home."""

    def __init__(
        self,
        folder: Path,
        *,
        protocols: Sequence[str] = (),
        config: Sequence[tuple[str, str]] = (),
        environment: Mapping[str, str] | None = None,
        limits: RunLimits | None = None,
    ) -> None:
        program = shutil.which("git")
        if program is None or not Path(program).is_absolute():
            # Found through a relative entry of PATH: whatever lies in the working folder.
            program = shutil.which("git", path=STANDARD_FOLDERS)
        if program is None:
            raise Stalled("the git program is not installed", code="git-missing")
        self._program = program
        self._home = folder
        self.limits = limits or RunLimits()
        self._environment = self._fixed_environment(protocols, config) | dict(environment or {})

    def run(
        self,
        *arguments: str,
        git_dir: Path | None = None,
        cwd: Path | None = None,
        stdin: bytes = b"",
        seconds: float | None = None,
        inherit: Sequence[int] = (),
    ) -> Answer:
        """Run one command to its end.

        Raises Unreachable when it ran past its limit and Stalled when it printed more than
        `answer_bytes`; the whole group is dead by then. Of stderr the last 64 KiB are kept.
        """
        limit = seconds if seconds is not None else self.limits.local_seconds
        process = self.start(*arguments, git_dir=git_dir, cwd=cwd, inherit=inherit)
        verb = next((a for a in arguments if not a.startswith("-")), "git")
        most = self.limits.answer_bytes
        try:
            out, errors = converse(
                process, stdin, seconds=limit, most_bytes=most, now=SystemClock().monotonic
            )
        except TooMuch:
            kill_group(process)
            raise Stalled(
                f"git {verb} was stopped after {most} bytes of answer",
                code="repository-too-large",
                hint="is this the repository you mean?",
            ) from None
        except subprocess.TimeoutExpired:
            kill_group(process)
            raise Unreachable(
                f"git {verb} was stopped after {limit:g} s without an answer",
                code="repository-unreachable",
            ) from None
        except BaseException:
            kill_group(process)
            raise
        return Answer(process.returncode, out, errors.decode("utf-8", "replace"))

    def start(
        self,
        *arguments: str,
        git_dir: Path | None = None,
        cwd: Path | None = None,
        inherit: Sequence[int] = (),
        errors: int = subprocess.PIPE,
    ) -> subprocess.Popen[bytes]:
        """Start a command in a process group of its own; `errors` is where its stderr goes."""
        environment = dict(self._environment)
        if git_dir is not None:
            environment["GIT_DIR"] = str(git_dir)
        if cwd is not None:
            environment["GIT_WORK_TREE"] = str(cwd)
        try:
            process = self._popen(arguments, environment, cwd, inherit, errors)
        except OSError as error:
            raise Retryable(
                f"git could not be started: {error.strerror}", code="git-not-started"
            ) from error
        self._confine(process.pid)
        return process

    def _popen(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        cwd: Path | None,
        inherit: Sequence[int],
        errors: int,
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self._program, "--no-pager", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            cwd=cwd or self._home,
            start_new_session=True,
            pass_fds=tuple(inherit),
        )

    def _confine(self, pid: int) -> None:
        """Cap memory and file size (a hostile server's pack), before git starts helpers."""
        for kind, amount in (
            (resource.RLIMIT_AS, self.limits.address_space_bytes),
            (resource.RLIMIT_FSIZE, self.limits.file_bytes),
            (resource.RLIMIT_CORE, 0),
        ):
            with suppress(ProcessLookupError, PermissionError, ValueError):
                resource.prlimit(pid, kind, (amount, amount))

    def _fixed_environment(
        self, protocols: Sequence[str], config: Sequence[tuple[str, str]]
    ) -> dict[str, str]:
        folder = str(Path(self._program).parent)
        environment = {
            "PATH": f"{folder}:{STANDARD_FOLDERS}",
            "HOME": str(self._home),
            "XDG_CONFIG_HOME": str(self._home),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "GIT_ALLOW_PROTOCOL": ":".join(protocols) or "none",
            "GIT_PROTOCOL_FROM_USER": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_FLUSH": "1",
        }
        pairs = [
            *FIXED_CONFIG,
            ("http.lowSpeedLimit", str(self.limits.low_speed_bytes)),
            ("http.lowSpeedTime", str(self.limits.low_speed_seconds)),
            *config,
        ]
        environment["GIT_CONFIG_COUNT"] = str(len(pairs))
        for index, (key, value) in enumerate(pairs):
            environment[f"GIT_CONFIG_KEY_{index}"] = key
            environment[f"GIT_CONFIG_VALUE_{index}"] = value
        return environment


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a child and everything it started, and reap it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(REAP_SECONDS)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
