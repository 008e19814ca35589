from __future__ import annotations

import base64
import shlex
from pathlib import Path

from stoker.git import Credentials, parse_address
from stoker.git.credentials import config_of, secrets_of, ssh_command

ADDRESS = parse_address("https://forge.example:8443/t/f")


def test_a_password_becomes_a_header_for_one_origin_only():
    """A redirect to another host must not carry it along (CVE-2026-41506)."""
    credentials = Credentials.from_line("bob:s3cret\n")
    token = base64.b64encode(b"bob:s3cret").decode()

    assert config_of(credentials, ADDRESS) == (
        ("http.https://forge.example:8443/.extraHeader", f"Authorization: Basic {token}"),
    )
    assert set(secrets_of(credentials, ADDRESS)) == {"s3cret", token}


def test_a_lone_token_is_a_password():
    assert Credentials.from_line("tok") == Credentials(username="stoker", password="tok")


def test_a_bearer_token_wins():
    pairs = config_of(Credentials(bearer="b", password="p"), ADDRESS)

    assert [value for _, value in pairs] == ["Authorization: Bearer b"]


def test_a_user_part_of_the_address_is_used_without_credentials():
    address = parse_address("https://bob:pw@forge.example/f")

    assert len(config_of(Credentials(), address)) == 1
    assert config_of(Credentials(), ADDRESS) == ()


def test_no_header_goes_to_ssh():
    assert config_of(Credentials(password="p"), parse_address("git@h:f")) == ()


def test_a_certificate_authority_is_named():
    pairs = config_of(Credentials(ca_file=Path("/etc/ca.crt")), ADDRESS)

    assert pairs == (("http.sslCAInfo", "/etc/ca.crt"),)


def test_ssh_trusts_only_the_given_host_keys_and_reads_no_configuration():
    words = shlex.split(
        ssh_command(Credentials(ssh_key=Path("/keys/id a"), known_hosts=Path("/keys/known")))
    )

    assert ["ssh", "-F", "/dev/null"] == words[:3]
    assert ["-i", "/keys/id a"] == words[-2:]
    for option in ("BatchMode=yes", "StrictHostKeyChecking=yes", "UserKnownHostsFile=/keys/known"):
        assert option in words


def test_the_users_own_known_hosts_count_without_a_file():
    words = shlex.split(ssh_command(Credentials(agent="/run/agent"), Path("/home/ann")))

    assert "UserKnownHostsFile=/home/ann/.ssh/known_hosts" in words
    assert "IdentityAgent=/run/agent" in words
    assert "UserKnownHostsFile=/dev/null" in shlex.split(ssh_command(Credentials()))


def test_credentials_never_show_themselves():
    assert "s3cret" not in repr(Credentials(password="s3cret", bearer="s3cret"))
