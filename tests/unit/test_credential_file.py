"""Links in folders of credentials: those that Kubernetes makes are followed, no others."""

from __future__ import annotations

import os

import pytest

from stoker.credential_file import credential_place, read_credential
from stoker.errors import Stalled


def mounted(folder, name="token", text="s3cret"):
    """A Secret as the kubelet mounts it: each name leads through ..data to a dated folder."""
    dated = folder / "..2026_11_30"
    dated.mkdir(parents=True)
    (dated / name).write_text(text)
    (folder / "..data").symlink_to(dated.name)
    (folder / name).symlink_to(f"..data/{name}")
    return folder / name


def refused(path):
    with pytest.raises(Stalled) as caught:
        read_credential(path, code="token-unreadable")
    assert caught.value.code == "token-unreadable"
    return caught.value.message


def test_a_mounted_secret_is_read(tmp_path):
    path = mounted(tmp_path / "account")

    assert read_credential(path, code="x") == b"s3cret"
    assert credential_place(path, code="x") == path.parent / "..2026_11_30" / "token"


def test_a_mounted_secret_is_read_below_a_folder_that_is_a_link(tmp_path):
    """/var/run is a link to /run nearly everywhere."""
    mounted(tmp_path / "run" / "account")
    (tmp_path / "var").symlink_to("run")

    assert read_credential(tmp_path / "var" / "account" / "token", code="x") == b"s3cret"


@pytest.mark.parametrize("kind", ["relative", "absolute", "through a folder"])
def test_a_link_to_a_file_elsewhere_is_refused(tmp_path, kind):
    """cases.md row 151, b.C row 132 (and row 128): another file was read as the token."""
    (tmp_path / "shadow").write_text("root:x")
    folder = tmp_path / "account"
    folder.mkdir()
    if kind == "through a folder":
        (folder / "..data").symlink_to("..")
        (folder / "token").symlink_to("..data/shadow")
    else:
        (folder / "token").symlink_to("../shadow" if kind == "relative" else tmp_path / "shadow")

    message = refused(folder / "token")

    assert "is a link to" in message
    assert "root:x" not in message


def test_what_is_no_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    assert "not a regular file" in refused(tmp_path / "pipe")
    assert "not a regular file" in refused(tmp_path)
    assert "cannot be read" in refused(tmp_path / "nowhere")


def test_a_file_that_holds_too_much_is_no_credential(tmp_path):
    (tmp_path / "token").write_bytes(b"x" * (1024 * 1024 + 1))

    assert "over 1048576 bytes" in refused(tmp_path / "token")
