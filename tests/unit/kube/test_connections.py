"""Certificate files that change while the controller runs, against a TLS server on loopback."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest

from stoker.errors import Unreachable
from stoker.kube.connections import CERTIFICATE_SECONDS
from stoker.kube.transport import Request
from unit.kube.test_https import StillClock, connect, get, ok, serve, watch

__all__ = ["connect", "serve"]


@dataclass(frozen=True)
class Pair:
    """A self-signed certificate for 127.0.0.1 and its key."""

    key: bytes
    pem: bytes

    @property
    def der(self) -> bytes:
        return ssl.PEM_cert_to_DER_cert(self.pem.decode())


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> tuple[Pair, Pair]:
    """The one before a rotation, and the one after it."""
    if which("openssl") is None:
        pytest.skip("no openssl program")
    made = []
    for name in ("before", "after"):
        folder = tmp_path_factory.mktemp(name)
        key, pem = folder / "key.pem", folder / "cert.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
             "-nodes", "-keyout", str(key), "-out", str(pem), "-days", "2", "-subj", f"/CN={name}",
             "-addext", "subjectAltName=IP:127.0.0.1"],
            check=True, capture_output=True,
        )  # fmt: skip
        made.append(Pair(key.read_bytes(), pem.read_bytes()))
    return made[0], made[1]


class Files:
    """Where kubeconfig has its certificates."""

    def __init__(self, folder: Path) -> None:
        self.ca, self.certificate, self.key = (folder / name for name in ("ca", "cert", "key"))

    def hold(self, ca: Pair, client: Pair) -> Files:
        self.ca.write_bytes(ca.pem)
        self.certificate.write_bytes(client.pem)
        self.key.write_bytes(client.key)
        return self

    def access(self) -> dict[str, object]:
        return {
            "ca_pem": self.ca.read_bytes(),
            "client_certificate": self.certificate.read_bytes(),
            "client_key": self.key.read_bytes(),
            "ca_file": str(self.ca),
            "certificate_file": str(self.certificate),
            "key_file": str(self.key),
        }


@pytest.fixture
def files(tmp_path) -> Files:
    return Files(tmp_path)


def context(own: Pair, folder: Path, *trusted: Pair) -> ssl.SSLContext:
    """A server with this certificate, that asks for a client certificate of these."""
    key, pem = folder / "server-key", folder / "server-pem"
    key.write_bytes(own.key)
    pem.write_bytes(own.pem)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(pem, key)
    made.load_verify_locations(cadata="".join(pair.pem.decode() for pair in trusted))
    made.verify_mode = ssl.CERT_REQUIRED
    return made


def apply() -> Request:
    """A write that must not be sent twice."""
    return Request("POST", "/api/v1/namespaces/llm/configmaps", body=b"{}")


def test_new_connections_show_the_certificate_that_the_files_hold_a_minute_later(
    serve, connect, files, pairs, tmp_path
):
    before, after = pairs
    server = serve(ok(b"{}\n"), context=context(before, tmp_path, before, after))
    clock = StillClock()
    transport = connect(server.url, clock, **files.hold(before, before).access())
    transport.send(get())
    files.hold(before, after)

    transport.send(get())
    clock.seconds += CERTIFICATE_SECONDS
    transport.send(get())
    list(transport.stream(watch()))

    assert [before.der, after.der, after.der] == [shown for _, shown in server.peers]
    assert 4 == len(server.requests)


@pytest.mark.parametrize("rotated", ["client", "authority"])
def test_a_failure_of_tls_reads_the_files_at_once(serve, connect, files, pairs, tmp_path, rotated):
    """An old certificate has ended, or the API server has a new authority."""
    before, after = pairs
    own = before if rotated == "client" else after
    server = serve(ok(), context=context(own, tmp_path, after))
    client = before if rotated == "client" else after
    transport = connect(server.url, **files.hold(before, client).access())
    with pytest.raises(Unreachable) as refused:
        transport.send(get(timeout_seconds=3))
    files.hold(own, after)

    assert refused.value.code == "api-server-untrusted"
    assert 200 == transport.send(get()).status


def test_a_write_is_not_sent_again_after_a_failure_of_tls(serve, connect, files, pairs, tmp_path):
    """Whether the first one came through is not known; the next one has the new certificate."""
    before, after = pairs
    server = serve(ok(), context=context(before, tmp_path, after))
    transport = connect(server.url, **files.hold(before, before).access())
    files.hold(before, after)

    with pytest.raises(Unreachable):
        transport.send(apply())
    assert [] == server.requests
    assert 200 == transport.send(apply()).status


def test_a_watch_begins_with_the_new_certificate_after_one_failed(
    serve, connect, files, pairs, tmp_path
):
    before, after = pairs
    server = serve(ok(b"{}\n"), context=context(after, tmp_path, after))
    transport = connect(server.url, **files.hold(before, after).access())
    files.hold(after, after)

    with pytest.raises(Unreachable):
        list(transport.stream(watch()))
    list(transport.stream(watch()))

    assert 1 == len(server.requests)


def test_an_answer_of_401_reads_the_files_at_once(serve, connect, files, pairs, tmp_path):
    """The API server only looks at the certificate, and takes an old one for nobody's."""
    before, after = pairs
    nobody = (401, {"Content-Type": "application/json"}, b"{}")
    server = serve(nobody, ok(), context=context(before, tmp_path, before, after))
    transport = connect(server.url, **files.hold(before, before).access())
    files.hold(before, after)

    assert 200 == transport.send(get()).status
    assert after.der == server.peers[-1][1]


@pytest.mark.parametrize("state", ["half written", "gone"])
def test_files_that_do_not_do_leave_what_is_in_use(
    serve, connect, files, pairs, tmp_path, caplog, state
):
    before, after = pairs
    server = serve(ok(), context=context(before, tmp_path, before, after))
    clock = StillClock()
    transport = connect(server.url, clock, **files.hold(before, before).access())
    if state == "gone":
        files.ca.unlink()
    else:
        files.certificate.write_bytes(after.pem)
    clock.seconds += CERTIFICATE_SECONDS

    assert 200 == transport.send(get()).status
    assert "certificate.unread" in caplog.text
    files.hold(before, after)
    clock.seconds += CERTIFICATE_SECONDS
    assert 200 == transport.send(get()).status
    assert after.der == server.peers[-1][1]


def test_files_that_stay_as_they_are_change_no_connection(serve, connect, files, pairs, tmp_path):
    before, _ = pairs
    server = serve(ok(), context=context(before, tmp_path, before))
    clock = StillClock()
    transport = connect(server.url, clock, **files.hold(before, before).access())
    for _ in range(3):
        transport.send(get())
        clock.seconds += CERTIFICATE_SECONDS

    assert 1 == len(server.connections)
