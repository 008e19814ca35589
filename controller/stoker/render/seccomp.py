"""The system-call filter of a render child, as classic BPF loaded through prctl.

Called by jail inside the child, after no_new_privs is set. What is refused gets EPERM, so
that Python reports it as an ordinary OSError.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

__all__ = ["install_filter", "is_known_machine"]

_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

_LOAD_WORD = 0x20
_JUMP_IF_EQUAL = 0x15
_JUMP_IF_AT_LEAST = 0x35
_RETURN = 0x06

_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_REFUSE = 0x00050000 | errno.EPERM

_NUMBER = 0
_ARCHITECTURE = 4
_FIRST_ARGUMENT = 16
"""Offsets into struct seccomp_data (linux/seccomp.h); the low half of a little-endian word."""

_X32_BIT = 0x40000000

_COMMON = {
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "pidfd_open": 434,
    "clone3": 435,
    "pidfd_getfd": 438,
}

_NUMBERS: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {
            "shmget": 29,
            "socket": 41,
            "connect": 42,
            "accept": 43,
            "bind": 49,
            "listen": 50,
            "socketpair": 53,
            "clone": 56,
            "fork": 57,
            "vfork": 58,
            "execve": 59,
            "kill": 62,
            "semget": 64,
            "msgget": 68,
            "ptrace": 101,
            "rt_sigqueueinfo": 129,
            "tkill": 200,
            "tgkill": 234,
            "mq_open": 240,
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "unshare": 272,
            "accept4": 288,
            "rt_tgsigqueueinfo": 297,
            "perf_event_open": 298,
            "prlimit64": 302,
            "open_by_handle_at": 304,
            "setns": 308,
            "process_vm_readv": 310,
            "process_vm_writev": 311,
            "bpf": 321,
            "execveat": 322,
            "userfaultfd": 323,
            **_COMMON,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "unshare": 97,
            "ptrace": 117,
            "kill": 129,
            "tkill": 130,
            "tgkill": 131,
            "rt_sigqueueinfo": 138,
            "mq_open": 180,
            "msgget": 186,
            "semget": 190,
            "shmget": 194,
            "socket": 198,
            "socketpair": 199,
            "bind": 200,
            "listen": 201,
            "accept": 202,
            "connect": 203,
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "clone": 220,
            "execve": 221,
            "rt_tgsigqueueinfo": 240,
            "perf_event_open": 241,
            "accept4": 242,
            "prlimit64": 261,
            "open_by_handle_at": 265,
            "setns": 268,
            "process_vm_readv": 270,
            "process_vm_writev": 271,
            "bpf": 280,
            "execveat": 281,
            "userfaultfd": 282,
            **_COMMON,
        },
    ),
}
"""Refused calls by machine, from the kernel's own tables (asm/unistd_64.h, asm-generic).

No sockets, no new processes or programs, no signals to or memory of others, no key rings,
no kernel interfaces that would go round the filter (io_uring, bpf).
"""


class _Program(ctypes.Structure):
    """Mirror struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def is_known_machine() -> bool:
    """Whether the call numbers of this machine are known; without them no filter is loaded."""
    return platform.machine() in _NUMBERS


def install_filter(libc: ctypes.CDLL) -> str:
    """Refuse sockets, processes and signals from now on; gives the reason if it cannot."""
    entry = _NUMBERS.get(platform.machine())
    if entry is None:
        return f"call numbers of {platform.machine()} are not known"
    code = _program(*entry)
    program = _Program(len(code) // 8, code)
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0:
        return ""
    return f"the kernel refused the filter: {errno.errorcode.get(ctypes.get_errno(), 'unknown')}"


def _program(architecture: int, numbers: dict[str, int]) -> bytes:
    """Build the filter: each refused number is one compare and one return."""
    limits = numbers["prlimit64"]
    steps = [
        (_LOAD_WORD, 0, 0, _ARCHITECTURE),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD_WORD, 0, 0, _NUMBER),
        # The x32 calls of x86_64 are the same calls under other numbers.
        (_JUMP_IF_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _REFUSE),
    ]
    for number in sorted(set(numbers.values()) - {limits}):
        steps += [(_JUMP_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    # A process may lower its own limits (pid 0), never those of another.
    steps += [
        (_JUMP_IF_EQUAL, 0, 3, limits),
        (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_IF_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
