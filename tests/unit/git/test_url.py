from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import Stalled
from stoker.git import parse_address, redact_url
from stoker.git.url import RepositoryAddress


@pytest.mark.parametrize(
    ("url", "operand"),
    [
        ("https://forge.example/team/fleet.git", "https://forge.example/team/fleet.git"),
        ("https://forge.example:8443/t/f", "https://forge.example:8443/t/f"),
        ("https://u:p%40ss@forge.example/t/f", "https://forge.example/t/f"),
        ("https://dev.example/org/my%20project/_git/repo", None),
        ("ssh://git@forge.example:2222/t/f.git", "ssh://git@forge.example:2222/t/f.git"),
        ("git@forge.example:t/f.git", "ssh://git@forge.example/t/f.git"),
        ("git@forge.example:~me/f.git", "ssh://git@forge.example/~me/f.git"),
        ("http://127.0.0.1:8080/f.git", "http://127.0.0.1:8080/f.git"),
        ("http://localhost/f.git", "http://localhost/f.git"),
        ("http://[::1]:80/f.git", "http://[::1]:80/f.git"),
    ],
)
def test_good_addresses_are_taken(url, operand):
    address = parse_address(url)

    assert (operand or url) == address.operand


def test_a_user_part_becomes_a_credential_and_is_never_shown():
    address = parse_address("https://bob:s3%2Fcret@forge.example/t/f.git")

    assert ("bob", "s3/cret") == (address.username, address.password)
    assert address.shown == address.operand == "https://forge.example/t/f.git"
    assert address.origin == "https://forge.example"


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("", id="empty"),
        pytest.param("-oProxyCommand=x", id="option"),
        pytest.param("ssh://-oProxyCommand=x/f", id="dash host, CVE-2017-1000117"),
        pytest.param("ssh://-x@host/f", id="dash user"),
        pytest.param("-x@host:f", id="dash scp user"),
        pytest.param("git@-host:f", id="dash scp host"),
        pytest.param("ssh://host/-f", id="dash path"),
        pytest.param("https://host/a%0ahost=evil", id="encoded newline, CVE-2020-5260"),
        pytest.param("https://host/a%0D", id="encoded return, CVE-2024-52006"),
        pytest.param("https://host/a\nb", id="newline"),
        pytest.param("https://ho\x1b[31mst/a", id="escape"),
        pytest.param("https:///f", id="no host, CVE-2020-11008"),
        pytest.param("https://host", id="no path"),
        pytest.param("https://host:0/f", id="port 0"),
        pytest.param("https://host:99999/f", id="port too large"),
        pytest.param("https://host/f?x=1", id="query"),
        pytest.param("https://host/f'x", id="quote, CVE-2026-45570"),
        pytest.param("https://host/f x", id="space"),
        pytest.param("http://forge.example/f", id="http to another machine"),
        pytest.param("http://127.0.0.1.evil.example/f", id="http to a lookalike"),
        pytest.param("ssh://git:pw@host/f", id="ssh password"),
        pytest.param("ext::sh -c touch% /tmp/x", id="ext transport"),
        pytest.param("ext://host/f", id="other scheme"),
        pytest.param("git://host/f", id="git scheme"),
        pytest.param("file:///srv/f.git", id="file"),
        pytest.param("/srv/f.git", id="path"),
        pytest.param("fleet.git", id="bare word"),
        pytest.param("https://ünicode.example/f", id="not ASCII"),
        pytest.param("https://host/" + "a" * 3000, id="too long"),
    ],
)
def test_bad_addresses_are_refused_in_one_plain_line(url):
    """b.G rows 92, 96, 97, 100, 108, 109 and 122."""
    with pytest.raises(Stalled) as caught:
        parse_address(url)

    assert caught.value.code == "repository-url-refused"
    assert caught.value.message.isprintable()


def test_paths_are_taken_only_with_consent():
    expected = RepositoryAddress("file", "file:///srv/f.git", "file:///srv/f.git")

    assert parse_address("/srv/f.git", allow_file=True) == expected
    assert parse_address("file:///srv/f.git", allow_file=True) == expected
    with pytest.raises(Stalled):
        parse_address("file://host/f", allow_file=True)


def test_user_parts_are_masked_anywhere_in_a_text():
    text = "fatal: unable to access 'https://u:pw@h/f': and ssh://tok@h/x"

    assert redact_url(text) == "fatal: unable to access 'https://***@h/f': and ssh://***@h/x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:s3/cret@h/f", "https://***@h/f"),
        ("https://u:s3@cret@h/f", "https://***@h/f"),
        ("https://s3cret@cret@h/f", "https://***@h/f"),
        ("'https://h/f?sig=s3cret&se=cret' and more", "'https://h/f?***' and more"),
        ("https://h/f#s3cret", "https://h/f?***"),
        ("https://h:8443/a@b", "https://h:8443/a@b"),
        ("see https://h/a and mail bob@h", "see https://h/a and mail bob@h"),
    ],
)
def test_passwords_with_slashes_and_tokens_in_queries_are_masked_too(text, shown):
    """b.A row 18 (CVE-2023-25163), b.F row 45 (CVE-2024-31216)."""
    assert shown == redact_url(text)


@pytest.mark.parametrize(
    "url",
    [
        "https://u:s3/cret@host/f",
        "https://u:s3@cret@host/f",
        "https://u:s3?/cret@host/f",
        "https://u:s3#/cret@host/f",
        "https://host/f?private_token=s3cret",
        "https://host/f?private_token=s3@cret",
        "https://host/f#s3cret",
        "https:/u:s3cret@host/f",
        "u:s3cret@host/f",
        "ftp://u:s3cret@host/f",
        "ssh://u:s3cret@host/f",
        "https://u:s3\tcret@host/f",
    ],
)
def test_a_refused_address_is_shown_without_its_secret(url):
    """b.A row 18 (CVE-2023-25163): an error repeated the address with its token."""
    with pytest.raises(Stalled) as caught:
        parse_address(url)

    assert "s3" not in str(caught.value)
    assert "cret" not in str(caught.value)


@given(st.text(max_size=60))
def test_no_text_makes_an_option_or_a_control_character_of_an_address(text):
    """Whatever is accepted can stand in an argument list."""
    for url in (text, f"https://{text}", f"ssh://{text}/f", f"git@{text}"):
        try:
            address = parse_address(url)
        except Stalled:
            continue
        assert address.operand.startswith(("https://", "ssh://", "http://"))
        assert address.operand.isascii()
        assert address.operand.isprintable()
        assert "@" not in address.shown.partition("://")[2].partition("/")[0]
