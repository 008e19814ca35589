from __future__ import annotations

import pytest

from stoker.errors import Retryable, Stalled, Unreachable
from stoker.git.trouble import error_of, plain


@pytest.mark.parametrize(
    ("errors", "code", "kind"),
    [
        ("fatal: unable to access 'https://h/': Could not resolve host: h", "repository-unreachable", Unreachable),
        ("fatal: unable to access 'https://h/': The requested URL returned error: 503", "repository-unreachable", Unreachable),
        ("error: RPC failed; curl 28 Operation too slow. Less than 1000 bytes/sec", "repository-unreachable", Unreachable),
        ("fatal: the remote end hung up unexpectedly", "repository-unreachable", Unreachable),
        ("", "repository-unreachable", Unreachable),
        ("fatal: unable to access 'https://h/': The requested URL returned error: 403", "repository-denied", Stalled),
        ("fatal: could not read Username for 'https://h': terminal prompts disabled", "repository-denied", Stalled),
        ("fatal: Authentication failed for 'https://h/'", "repository-denied", Stalled),
        ("git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.", "repository-denied", Stalled),
        ("Host key verification failed.\nfatal: Could not read from remote repository.", "repository-host-key-unknown", Stalled),
        ("remote: Not Found\nfatal: repository 'https://h/f/' not found", "repository-not-found", Stalled),
        ("fatal: '/f' does not appear to be a git repository", "repository-not-found", Stalled),
        ("fatal: unable to access 'https://h/': The requested URL returned error: 301", "repository-redirected", Stalled),
        ("fatal: transport 'ext' not allowed", "repository-url-refused", Stalled),
        ("fatal: couldn't find remote ref refs/heads/x", "ref-not-found", Stalled),
        ("error: object abc: hasDotgit: contains '.git'\nfatal: fsck error in packed object", "repository-unsafe", Stalled),
        ("fatal: write error: No space left on device", "disk-full", Retryable),
        ("fatal: not a git repository: '/m'", "mirror-corrupt", Retryable),
        ("error: object file objects/ab/c is empty\nfatal: loose object abc is corrupt", "mirror-corrupt", Retryable),
    ],
)  # fmt: skip
def test_git_complaints_mean(errors, code, kind):
    error = error_of("fetching", errors, shown="https://h/f")

    assert code == error.code
    assert type(error) is kind


def test_messages_hold_no_secret_no_control_character_and_one_line():
    errors = (
        "warning: x\nfatal: unable to access 'https://u:pw@h/': token s3cret \x1b[2Jrefused\x07\n"
        "Please make sure you have the correct access rights\n"
    )

    text = plain(errors, ("s3cret",))

    assert text == "fatal: unable to access 'https://***@h/': token ***  [2Jrefused"
