"""The HTTPS transport against a scripted server on the loopback address."""

import logging
import socket
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from shutil import which

import pytest

from stoker.errors import Refused, Stalled, Unreachable
from stoker.kube.client import StreamRefused
from stoker.kube.https import POOL_SIZE, HttpsTransport
from stoker.kube.kubeconfig import Access
from stoker.kube.transport import Request

APPLY = "application/apply-patch+yaml"
CANARY = "canary-token-3f9a"


class StillClock:
    """A clock that moves only when somebody waits; `waits` says how long each time."""

    def __init__(self):
        self.seconds = 1000.0
        self.waits = []

    def now_ms(self):
        return int(self.seconds * 1000)

    def monotonic(self):
        return self.seconds

    def wait(self, seconds):
        self.waits.append(round(seconds, 3))
        self.seconds += seconds


class Server:
    """Answers by a script: one (status, headers, body) a request, the last one for ever.

    A body that is a list is sent as chunks; None among them ends the script without the
    final chunk, an Event is waited for.
    """

    def __init__(self, script, context=None):
        self.script = list(script)
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.connections: set[object] = set()
        self.peers: list[tuple[object, bytes]] = []
        """Each connection and the client certificate that it showed."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *args):
                pass

            def answer(self):
                if self.client_address not in outer.connections:
                    shown = getattr(self.connection, "getpeercert", lambda binary_form: b"")
                    outer.peers.append((self.client_address, shown(True)))
                outer.connections.add(self.client_address)
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                outer.requests.append((self.command, self.path, dict(self.headers), body))
                status, headers, content = (
                    outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                )
                if status == "hang-up":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if isinstance(content, list):
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self.chunks(content)
                else:
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def chunks(self, content):
                for part in content:
                    if part is None:
                        self.close_connection = True
                        return
                    if isinstance(part, threading.Event):
                        part.wait(10)
                        self.close_connection = True
                        return
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.write(b"0\r\n\r\n")

            do_GET = do_PATCH = do_POST = do_DELETE = do_PUT = answer  # noqa: N815

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        if context is not None:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.http.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.port = self.http.server_address[1]
        scheme = "https" if context else "http"
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join(5)


@pytest.fixture
def serve():
    started = []

    def start(*script, context=None):
        server = Server(script, context)
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def connect():
    opened = []

    def make(url, clock=None, silence=90.0, **access):
        transport = HttpsTransport(
            Access(server=url, **access),
            clock=clock or StillClock(),
            jitter=lambda: 0.0,
            stream_silence_seconds=silence,
        )
        opened.append(transport)
        return transport

    yield make
    for transport in opened:
        transport.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate for 127.0.0.1, made by the openssl program."""
    if which("openssl") is None:
        pytest.skip("no openssl program")
    folder = tmp_path_factory.mktemp("tls")
    key, pem = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", str(key), "-out", str(pem), "-days", "2", "-subj", "/CN=loopback",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    return key, pem


def get(path="/api/v1/nodes", **more):
    return Request("GET", path, **more)


def ok(body=b"{}", **headers):
    return 200, {"Content-Type": "application/json", **headers}, body


def failing(status, retry_after=None, body=b'{"kind": "Status"}'):
    headers = {"Content-Type": "application/json"}
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    return status, headers, body


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_request_goes_out_whole_and_its_answer_comes_back(serve, connect):
    server = serve(ok(b'{"kind": "Pod"}'))

    answer = connect(server.url, token="t1").send(
        Request(
            "PATCH",
            "/apis/apps/v1/namespaces/llm/deployments/web",
            query=(("fieldManager", "stoker-1"), ("dryRun", "All")),
            body=b'{"a": 1}',
            content_type=APPLY,
            user_agent="stoker/9",
        )
    )

    method, path, headers, body = server.requests[0]
    assert answer.status == 200
    assert answer.body == b'{"kind": "Pod"}'
    assert answer.header("content-type") == "application/json"
    assert (method, body) == ("PATCH", b'{"a": 1}')
    assert path.endswith("/deployments/web?fieldManager=stoker-1&dryRun=All")
    assert headers["Content-Type"] == APPLY
    assert headers["Authorization"] == "Bearer t1"
    assert headers["User-Agent"] == "stoker/9"


def test_one_connection_is_kept_for_many_requests(serve, connect):
    server = serve(ok())
    transport = connect(server.url)

    for _ in range(5):
        transport.send(get())

    assert len(server.requests) == 5
    assert len(server.connections) == 1


def test_a_path_prefix_of_the_server_is_kept(serve, connect):
    server = serve(ok())

    connect(f"{server.url}/k8s/clusters/c-1").send(get("/version"))

    assert server.requests[0][1] == "/k8s/clusters/c-1/version"


def test_a_name_that_nobody_resolves_is_unreachable_and_told():
    """reliability-security c.1 row 14: like a server that is away, with a bounded number of tries."""
    clock = StillClock()
    transport = HttpsTransport(Access(server="https://api.example.invalid:6443"), clock=clock)
    with pytest.raises(Unreachable, match=r"api\.example\.invalid"):
        transport.send(Request("GET", "/version"))

    assert sum(clock.waits) <= 30


def test_no_listener_is_unreachable(connect):
    with pytest.raises(Unreachable) as caught:
        connect(f"http://127.0.0.1:{free_port()}").send(get())

    assert caught.value.code == "api-server-unreachable"
    assert "object at 0x" not in caught.value.message


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
@pytest.mark.parametrize(
    "request_",
    [get(), Request("PATCH", "/a", body=b"{}", content_type=APPLY)],
    ids=["get", "server-side-apply"],
)
def test_what_may_pass_is_sent_again_when_repeating_is_harmless(serve, connect, status, request_):
    server = serve(failing(status), failing(status), ok())
    clock = StillClock()

    answer = connect(server.url, clock).send(request_)

    assert answer.status == 200
    assert clock.waits == [0.1, 0.2]


@pytest.mark.parametrize(
    "request_",
    [
        Request("POST", "/a", body=b"{}", content_type="application/json"),
        Request("PUT", "/a", body=b"{}", content_type="application/json"),
        Request("DELETE", "/a"),
        Request("PATCH", "/a", body=b"{}", content_type="application/merge-patch+json"),
    ],
    ids=["create", "update", "delete", "merge-patch"],
)
@pytest.mark.parametrize("script", [failing(503, 1), ("hang-up", {}, b"")], ids=["503", "hang-up"])
def test_a_write_that_may_have_happened_is_never_sent_twice(serve, connect, request_, script):
    """reliability-security c.2 row 20: its outcome is read before anything is sent again."""
    server = serve(script, ok())
    transport = connect(server.url)

    try:
        answer = transport.send(request_)
    except Unreachable:
        answer = None

    assert answer is None or answer.status == 503
    assert len(server.requests) == 1


def test_a_connection_that_breaks_is_tried_again_for_reads(serve, connect):
    server = serve(("hang-up", {}, b""), ok())

    assert connect(server.url).send(get()).status == 200
    assert len(server.requests) == 2


def test_retries_end_and_the_last_answer_is_given(serve, connect):
    server = serve(failing(503))

    assert connect(server.url).send(get()).status == 503
    assert len(server.requests) == 4


def test_a_storm_of_failures_at_most_doubles_the_load(serve, connect):
    """reliability-security c.2 row 22."""
    server = serve(failing(500))
    transport = connect(server.url)

    for _ in range(50):
        transport.send(get())

    assert len(server.requests) <= 100


def test_a_short_retry_after_is_waited_for(serve, connect):
    server = serve(failing(429, 2), ok())
    clock = StillClock()

    assert connect(server.url, clock).send(get()).status == 200
    assert clock.waits == [2.0]


@pytest.mark.parametrize(
    "body", [b'{"kind": "Status"}', b"too many requests"], ids=["json", "text"]
)
def test_a_long_retry_after_goes_back_and_silences_everybody(serve, connect, body):
    """reliability-security c.2 row 21: no waiting inside a pass, no hammering meanwhile."""
    server = serve(failing(429, 30, body), ok())
    clock = StillClock()
    transport = connect(server.url, clock)

    first, second = transport.send(get()), transport.send(get())
    with pytest.raises(StreamRefused):
        list(transport.stream(get()))
    silent = len(server.requests)
    clock.seconds += 30
    third = transport.send(get())

    assert (first.status, second.status, third.status) == (429, 429, 200)
    assert second.header("retry-after") == "30"
    assert silent == 1
    assert clock.waits == []


def test_a_wait_that_stands_in_the_body_alone_is_obeyed_too(serve, connect):
    """a.3 A10, c.2 row 21: kopf had to learn both shapes of a 429."""
    body = b'{"kind": "Status", "details": {"retryAfterSeconds": 30}}'
    server = serve(failing(429, None, body), ok())
    clock = StillClock()
    transport = connect(server.url, clock)

    first, second = transport.send(get()), transport.send(get())

    assert (first.status, second.status, len(server.requests)) == (429, 429, 1)
    clock.seconds += 30
    assert 200 == transport.send(get()).status


def test_a_wait_until_a_date_counts_from_the_answers_own_date(serve, connect):
    """RFC 9110 allows both; clocks of proxies may be years off."""
    server = serve(
        (
            429,
            {
                "Date": "Sun, 29 Nov 2020 10:00:00 GMT",
                "Retry-After": "Sun, 29 Nov 2020 10:00:02 GMT",
            },
            b"slow down",
        ),
        ok(),
    )
    clock = StillClock()

    assert connect(server.url, clock).send(get()).status == 200
    assert clock.waits == [2.0]


def test_what_is_not_implemented_is_not_asked_for_again(serve, connect):
    """a.3 A10: 501 says never."""
    server = serve(failing(501))

    assert connect(server.url).send(get()).status == 501
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_redirects_are_never_followed(serve, connect, code):
    """b.C row 125: an aggregated server could send the token elsewhere."""
    target = serve(ok())
    server = serve((code, {"Location": f"{target.url}/steal"}, b""))

    with pytest.raises(Refused) as caught:
        connect(server.url, token=CANARY).send(get())

    assert caught.value.code == "api-redirect-refused"
    assert target.requests == []


def test_a_web_page_with_status_200_is_no_answer(serve, connect):
    """reliability-security c.2 row 55."""
    server = serve((200, {"Content-Type": "text/html; charset=utf-8"}, b"<html>Log in</html>"))

    with pytest.raises(Unreachable, match="web page"):
        connect(server.url).send(get())
    with pytest.raises(Unreachable, match="web page"):
        list(connect(server.url).stream(get()))


def test_proxies_of_the_environment_are_not_used(serve, connect, monkeypatch):
    proxy, server = serve(ok()), serve(ok())
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv("http_proxy", proxy.url)

    connect(server.url).send(get())

    assert (len(proxy.requests), len(server.requests)) == (0, 1)


def test_the_proxy_of_the_kubeconfig_is_used(serve, connect):
    proxy, server = serve(ok()), serve(ok())

    connect(server.url, proxy_url=proxy.url).send(get("/version"))

    assert proxy.requests[0][1] == f"{server.url}/version"
    assert server.requests == []


def test_a_slow_answer_is_cut_at_the_requests_own_timeout(serve, connect):
    never = threading.Event()
    server = serve((200, {}, [b"{", never]))

    with pytest.raises(Unreachable):
        connect(server.url).send(get(timeout_seconds=0.2))
    never.set()


def test_an_answer_without_end_is_cut_off(serve):
    """b.A row 9 (CVE-2024-29893): every body has a cap."""
    server = serve(ok(b"x" * 3_000_000))
    transport = HttpsTransport(Access(server=server.url), longest_answer_bytes=2_000_000)

    with pytest.raises(Refused) as caught:
        transport.send(get())
    transport.close()

    assert caught.value.code == "api-answer-too-large"
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["endless", "slow"])
def test_answers_that_are_cut_off_keep_no_connection(serve, connect, kind):
    """Each took a place in the pool with it, until after six nothing was sent any more."""
    never = threading.Event()
    bodies = {"endless": b"x" * 3_000_000, "slow": [b"{", never]}
    server = serve(*[(200, {}, bodies[kind])] * (POOL_SIZE + 1), ok())
    transport = HttpsTransport(Access(server=server.url), longest_answer_bytes=2_000_000)

    for _ in range(POOL_SIZE + 1):
        with pytest.raises((Refused, Unreachable)):
            transport.send(get(timeout_seconds=30 if kind == "endless" else 0.05))
    answer = transport.send(get())
    never.set()
    transport.close()

    assert 200 == answer.status


def test_a_token_file_is_read_again_after_a_401_and_once_only(serve, connect, tmp_path):
    token = tmp_path / "token"
    token.write_text("old\n")
    server = serve(failing(401), ok(), failing(401), failing(401))
    transport = connect(server.url, token_file=str(token))
    transport._identity.token()
    token.write_text("new\n")

    first = transport.send(get())
    second = transport.send(get())

    tokens = [headers["Authorization"] for _, _, headers, _ in server.requests]
    assert (first.status, second.status) == (200, 401)
    assert tokens == ["Bearer old", "Bearer new", "Bearer new"]


def test_a_token_file_is_read_again_every_minute(serve, connect, tmp_path):
    """reliability-security c.1 row 15: the kubelet rotates it long before it runs out."""
    token = tmp_path / "token"
    token.write_text("old")
    server = serve(ok())
    clock = StillClock()
    transport = connect(server.url, clock, token_file=str(token))
    transport.send(get())
    token.write_text("new")
    clock.seconds += 59
    transport.send(get())
    clock.seconds += 1
    transport.send(get())

    tokens = [headers["Authorization"] for _, _, headers, _ in server.requests]
    assert tokens == ["Bearer old", "Bearer old", "Bearer new"]


def test_a_token_file_that_is_gone_for_a_moment_leaves_the_token_in_use(serve, connect, tmp_path):
    token = tmp_path / "token"
    token.write_text("old")
    server = serve(ok())
    clock = StillClock()
    transport = connect(server.url, clock, token_file=str(token))
    transport.send(get())
    token.unlink()
    clock.seconds += 61

    assert transport.send(get()).status == 200
    assert server.requests[-1][2]["Authorization"] == "Bearer old"


def test_an_empty_token_file_never_makes_an_anonymous_request(serve, connect, tmp_path):
    """b.C row 126, c.1 row 15: the server would answer as to anybody."""
    token = tmp_path / "token"
    token.write_text("\n")
    server = serve(ok())

    with pytest.raises(Stalled) as caught:
        connect(server.url, token_file=str(token)).send(get())

    assert caught.value.code == "token-unreadable"
    assert server.requests == []


def test_an_inline_token_that_is_refused_stays_refused(serve, connect):
    server = serve(failing(401))

    assert connect(server.url, token="t").send(get()).status == 401
    assert len(server.requests) == 1


def test_the_token_appears_in_no_log_and_no_error(serve, connect, caplog):
    """b.C row 124, at the highest verbosity."""
    caplog.set_level(logging.DEBUG)
    server = serve(failing(503), failing(401))
    transport = connect(server.url, token=CANARY)

    transport.send(get())
    with pytest.raises(Unreachable) as caught:
        connect(f"http://127.0.0.1:{free_port()}", token=CANARY).send(get())

    assert CANARY not in caplog.text
    assert CANARY not in str(caught.value) + repr(caught.value)
    assert CANARY not in repr(Access(server="https://x", token=CANARY, proxy_url=CANARY))


def test_a_verified_server_answers_and_http_is_warned_about(serve, connect, certificate):
    key, pem = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    server = serve(ok(), context=context)
    transport = connect(server.url, ca_pem=pem.read_bytes())

    assert transport.send(get()).status == 200
    assert transport.warnings == ()
    assert len(connect("http://127.0.0.1:1").warnings) == 1


def test_an_unknown_authority_is_never_spoken_to(serve, connect, certificate):
    """c.2 row 54, b.A row 38, b.C row 127: one hard failure, no second try, no token sent."""
    key, pem = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    server = serve(ok(), context=context)
    clock = StillClock()

    with pytest.raises(Unreachable) as caught:
        connect(server.url, clock, token=CANARY).send(get())
    with pytest.raises(Unreachable):
        list(connect(server.url, token=CANARY).stream(get()))

    assert caught.value.code == "api-server-untrusted"
    assert clock.waits == []
    assert server.requests == []


def test_insecure_is_obeyed_and_said_aloud(serve, connect, certificate):
    """b.A row 38 (CVE-2022-31105): verification cannot be turned off in silence."""
    key, pem = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    server = serve(ok(), context=context)
    transport = connect(server.url, insecure=True)

    assert transport.send(get()).status == 200
    assert "not verified" in transport.warnings[0]


def test_a_client_certificate_is_shown(serve, connect, certificate):
    key, pem = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    context.load_verify_locations(pem)
    context.verify_mode = ssl.CERT_REQUIRED
    server = serve(ok(), context=context)
    shown = {"client_certificate": pem.read_bytes(), "client_key": key.read_bytes()}

    assert connect(server.url, ca_pem=pem.read_bytes(), **shown).send(get()).status == 200
    with pytest.raises(Unreachable):
        connect(server.url, ca_pem=pem.read_bytes()).send(get(timeout_seconds=3))


def test_unusable_certificates_are_named(connect):
    with pytest.raises(Stalled) as caught:
        connect("https://127.0.0.1:1", ca_pem=b"-----BEGIN NONSENSE")

    assert caught.value.code == "kubeconfig-invalid"


def watch(bookmarks=True, **more):
    query = (("watch", "1"), *((("allowWatchBookmarks", "true"),) if bookmarks else ()))
    return get(query=query, **more)


def test_a_watch_yields_whole_lines_however_they_are_cut(serve, connect):
    server = serve((200, {}, [b'{"a": 1}\n{"b"', b": 2}\n", b"\n", b'{"c": 3}\n']))

    assert list(connect(server.url).stream(watch())) == [b'{"a": 1}', b'{"b": 2}', b'{"c": 3}']


def test_a_watch_that_ends_within_an_event_gives_no_half_event(serve, connect):
    server = serve((200, {}, [b'{"a": 1}\n{"b"']))
    lines = []

    with pytest.raises(Unreachable):
        lines.extend(connect(server.url).stream(watch()))

    assert b'{"b"' not in lines


def test_a_watch_that_breaks_off_is_unreachable(serve, connect):
    server = serve((200, {}, [b'{"a": 1}\n', None]))
    stream = connect(server.url).stream(watch())

    assert next(stream) == b'{"a": 1}'
    with pytest.raises(Unreachable) as caught:
        next(stream)
    assert caught.value.code == "api-server-unreachable"


def test_a_silent_watch_ends_by_itself(serve, connect):
    """reliability-security c.2 row 25: no bytes and no close."""
    never = threading.Event()
    server = serve((200, {}, [b'{"a": 1}\n', never]))
    stream = connect(server.url, silence=0.2).stream(watch(timeout_seconds=300))

    assert next(stream) == b'{"a": 1}'
    with pytest.raises(Unreachable):
        next(stream)
    never.set()


def test_a_refused_watch_gives_the_servers_answer(serve, connect):
    server = serve(failing(410, body=b'{"kind": "Status", "code": 410}'))

    with pytest.raises(StreamRefused) as caught:
        list(connect(server.url).stream(watch()))

    assert caught.value.response.status == 410
    assert b"410" in caught.value.response.body


def test_closing_ends_running_watches_from_another_thread(serve, connect):
    never = threading.Event()
    server = serve((200, {}, [b'{"a": 1}\n', never]))
    transport = connect(server.url)
    stream = transport.stream(watch())
    next(stream)
    rest = []
    reader = threading.Thread(target=lambda: rest.extend(stream))
    reader.start()

    transport.close()
    reader.join(5)
    never.set()

    assert not reader.is_alive()
    assert rest == []
    with pytest.raises(Unreachable):
        transport.send(get())


def test_closing_ends_running_watches_over_tls(serve, connect, certificate):
    key, pem = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    never = threading.Event()
    server = serve((200, {}, [b'{"a": 1}\n', never]), context=context)
    transport = connect(server.url, ca_pem=pem.read_bytes())
    stream = transport.stream(watch())
    next(stream)
    reader = threading.Thread(target=lambda: list(stream))
    reader.start()

    transport.close()
    reader.join(5)
    never.set()

    assert not reader.is_alive()


def test_a_transport_comes_from_a_kubeconfig_or_from_a_pod(serve, tmp_path):
    server = serve(ok(), failing(401), ok())
    file = tmp_path / "config"
    file.write_text(
        f"""
current-context: m
clusters: [{{name: c, cluster: {{server: "{server.url}"}}}}]
users: [{{name: u, user: {{token: file-token}}}}]
contexts: [{{name: m, context: {{cluster: c, user: u}}}}]
"""
    )
    for name in ("token", "ca.crt"):
        (tmp_path / name).write_text("x")
    pod = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}

    outside = HttpsTransport.from_kubeconfig(file, clock=StillClock())
    status = outside.send(get()).status
    outside.close()
    with pytest.raises(Stalled) as caught:
        HttpsTransport.in_cluster(environment=pod, folder=tmp_path)

    assert status == 200
    assert server.requests[0][2]["Authorization"] == "Bearer file-token"
    assert caught.value.code == "kubeconfig-invalid"


def test_a_watch_asks_again_with_a_fresh_token_after_a_401(serve, connect, tmp_path):
    token = tmp_path / "token"
    token.write_text("old")
    server = serve(failing(401), (200, {}, [b"{}\n"]))
    transport = connect(server.url, token_file=str(token))
    transport._identity.token()
    token.write_text("new")

    assert list(transport.stream(watch())) == [b"{}"]


def test_a_watch_waits_as_long_as_the_server_asked(serve, connect):
    server = serve(failing(503, 3), (200, {}, [b"{}\n"]))
    clock = StillClock()
    transport = connect(server.url, clock)
    transport.send(Request("DELETE", "/a"))

    assert list(transport.stream(watch())) == [b"{}"]
    assert clock.waits == [3.0]


@pytest.mark.parametrize("status", [301, 307])
def test_a_watch_follows_no_redirect(serve, connect, status):
    target = serve(ok())
    server = serve((status, {"Location": target.url}, b""))

    with pytest.raises(Unreachable, match="redirect"):
        list(connect(server.url, token=CANARY).stream(watch()))
    assert target.requests == []


def test_a_watch_that_nobody_answers_is_unreachable(connect):
    transport = connect(f"http://127.0.0.1:{free_port()}")

    with pytest.raises(Unreachable) as caught:
        list(transport.stream(watch()))
    transport.close()
    with pytest.raises(Unreachable, match="closed"):
        list(transport.stream(watch()))

    assert caught.value.code == "api-server-unreachable"


def test_the_proxys_user_goes_to_the_proxy_and_only_there(serve, connect):
    proxy = serve(ok())
    url = proxy.url.replace("http://", "http://me:se%40cret@")

    connect("http://192.0.2.1", proxy_url=url).send(get())

    headers = proxy.requests[0][2]
    assert headers["proxy-authorization"] == "Basic bWU6c2VAY3JldA=="


def test_other_proxies_are_refused(connect):
    with pytest.raises(Stalled) as caught:
        connect("https://127.0.0.1:1", proxy_url="socks5://127.0.0.1:2")

    assert caught.value.code == "kubeconfig-unsupported"


def test_the_server_name_of_the_kubeconfig_is_the_one_verified(serve, connect, certificate):
    key, pem = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    server = serve(ok(), context=context)
    trusted = {"ca_pem": pem.read_bytes()}

    assert connect(server.url, tls_server_name="127.0.0.1", **trusted).send(get()).status == 200
    with pytest.raises(Unreachable):
        connect(server.url, tls_server_name="kubernetes", **trusted).send(get())


def test_a_token_file_that_is_gone_is_named(connect, tmp_path):
    with pytest.raises(Stalled) as caught:
        connect("http://127.0.0.1:1", token_file=str(tmp_path / "token")).send(get())

    assert caught.value.code == "token-unreadable"


# ------------------------------------------------------------------ before the first byte
def test_what_is_asked_before_the_first_byte_can_stop_a_request(serve, connect):
    """A lease that ran out while a connection was made: nothing must leave (note 14)."""
    server = serve(ok())

    def refuse():
        raise Refused("not now", code="lease-lost")

    transport = connect(server.url)
    with pytest.raises(Refused):
        transport.send(Request("PUT", "/api", body=b"{}", before_bytes=refuse))
    assert 200 == transport.send(get()).status

    assert [method for method, *_ in server.requests] == ["GET"]


def test_it_is_asked_again_before_each_resend(serve, connect):
    """The waits between resends are long enough for another to take over."""
    server = serve(failing(503), ok())
    asked = []

    def once():
        asked.append(len(server.requests))
        if server.requests:
            raise Refused("not any more", code="lease-lost")

    request = Request("PATCH", "/api", content_type=APPLY, before_bytes=once)
    with pytest.raises(Refused):
        connect(server.url).send(request)

    assert 1 == len(server.requests)
    assert asked == [0, 1]


def test_it_is_asked_over_tls_too(serve, connect, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])
    server = serve(ok(), context=context)
    asked = []
    transport = connect(server.url, ca_pem=certificate[1].read_bytes())

    transport.send(Request("PUT", "/api", body=b"{}", before_bytes=lambda: asked.append(1)))
    transport.send(get())

    assert asked == [1, 1]  # the head and the body
