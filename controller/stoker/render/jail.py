"""The jail of a render child: what it gives up before it reads repository text.

`enter_jail` runs once inside the child (worker) and says which parts hold; `jail_support`
asks the kernel the same without giving anything up (doctor). Linux only; elsewhere every
part says so. Nothing here protects against a bug of the kernel itself.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import struct
import sys
from dataclasses import dataclass

from stoker.render import seccomp

__all__ = ["ON", "PARTS", "JailLimits", "allow_cpu", "enter_jail", "jail_support"]

ON = "on"
PARTS = ("landlock", "no-new-privileges", "resource-limits", "seccomp")

_PR_SET_DUMPABLE = 4
_PR_GET_SECCOMP = 21
_PR_SET_NO_NEW_PRIVS = 38
_PR_GET_NO_NEW_PRIVS = 39

_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
"""The same numbers on every architecture (added after the tables were unified)."""
_LANDLOCK_VERSION_FLAG = 1
_LANDLOCK_PATH_BENEATH = 1

_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""Every file right an ABI knows (linux/landlock.h); 4 and 6 add none."""
_NETWORK_ABI = 4
_SCOPE_ABI = 6
_ALL_NETWORK = 0b11
_ALL_SCOPES = 0b11


@dataclass(frozen=True, slots=True)
class JailLimits:
    """Hard limits of one child.

    `cpu_seconds` bounds its whole life; `allow_cpu` sets the softer limit of each job.
    """

    address_space_bytes: int = 512 * 2**20
    cpu_seconds: int = 3600
    open_files: int = 32


def enter_jail(readable: tuple[str, ...], limits: JailLimits) -> dict[str, str]:
    """Give up everything but reading `readable` and the open pipes.

    Gives each part of the jail with `on`, or with the reason why it does not hold.
    Cannot be undone.
    """
    parts = {"resource-limits": _limit_resources(limits)}
    libc = _libc()
    if libc is None:
        reason = f"not available on {sys.platform}"
        return parts | dict.fromkeys(("landlock", "no-new-privileges", "seccomp"), reason)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    refused = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    parts["no-new-privileges"] = _errno_name() if refused else ON
    parts["landlock"] = _restrict_files(libc, readable)
    # The filter comes last: it refuses calls that the steps above may need.
    parts["seccomp"] = seccomp.install_filter(libc) or ON
    return dict(sorted(parts.items()))


def allow_cpu(seconds: int, limits: JailLimits) -> None:
    """Kill this process (SIGXCPU) once it has used that much more CPU time."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(usage.ru_utime + usage.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (min(soft, limits.cpu_seconds), limits.cpu_seconds))


def jail_support() -> dict[str, str]:
    """Say for each part of the jail whether this kernel has it: `on`, or why not."""
    parts = {"resource-limits": ON}
    libc = _libc()
    if libc is None:
        reason = f"not available on {sys.platform}"
        return parts | dict.fromkeys(("landlock", "no-new-privileges", "seccomp"), reason)
    privileges = libc.prctl(_PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
    parts["no-new-privileges"] = ON if privileges >= 0 else _errno_name()
    parts["landlock"] = ON if _landlock_abi(libc) > 0 else _errno_name()
    if libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) < 0:
        parts["seccomp"] = _errno_name()
    else:
        known = seccomp.is_known_machine()
        parts["seccomp"] = ON if known else f"call numbers of {os.uname().machine} are not known"
    return dict(sorted(parts.items()))


def _libc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    return ctypes.CDLL(None, use_errno=True)


def _errno_name() -> str:
    return errno.errorcode.get(ctypes.get_errno(), "refused")


def _limit_resources(limits: JailLimits) -> str:
    wanted = {
        "AS": limits.address_space_bytes,
        "CORE": 0,
        "CPU": limits.cpu_seconds,
        "FSIZE": 0,
        "NOFILE": limits.open_files,
    }
    for name, value in wanted.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is None:
            return f"RLIMIT_{name} is missing"
        try:
            resource.setrlimit(number, (value, value))
        except (OSError, ValueError) as error:
            return f"RLIMIT_{name}: {type(error).__name__}"
    return ON


def _landlock_abi(libc: ctypes.CDLL) -> int:
    return int(libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION_FLAG))


def _restrict_files(libc: ctypes.CDLL, readable: tuple[str, ...]) -> str:
    """Refuse every use of the file system but reading below the given folders."""
    abi = _landlock_abi(libc)
    if abi < 1:
        return _errno_name()
    rights = max(value for since, value in _RIGHTS_BY_ABI.items() if since <= abi)
    attributes = struct.pack("=Q", rights)
    if abi >= _NETWORK_ABI:
        attributes += struct.pack("=Q", _ALL_NETWORK)
    if abi >= _SCOPE_ABI:
        attributes += struct.pack("=Q", _ALL_SCOPES)
    ruleset = libc.syscall(_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return _errno_name()
    try:
        for folder in readable:
            if reason := _allow_reading(libc, ruleset, folder):
                return reason
        if libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0):
            return _errno_name()
    finally:
        os.close(ruleset)
    return ON


def _allow_reading(libc: ctypes.CDLL, ruleset: int, folder: str) -> str:
    try:
        opened = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    try:
        rule = struct.pack("=Qi", _READ_FILE | _READ_DIR, opened)
        failed = libc.syscall(_LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_PATH_BENEATH, rule, 0)
        return _errno_name() if failed else ""
    finally:
        os.close(opened)
