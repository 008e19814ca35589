"""From flags to a client: whom we act as, which context, and no program without being asked."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import yaml

from stoker.cli.connect import connect, context_name, expected_caller
from stoker.cli.session import Session, Target
from stoker.errors import Stalled
from stoker.git import FolderRepo
from stoker.model.refs import ObjectRef
from stoker.render import Renderer

KINDS = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [{"name": "namespaces", "kind": "Namespace", "namespaced": False, "verbs": []}],
}
KUBE_SYSTEM = ObjectRef("", "Namespace", "", "kube-system")


@pytest.fixture
def api() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """An HTTP server that answers everything alike, and the headers it was sent."""
    seen: list[dict[str, str]] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append({name.lower(): value for name, value in self.headers.items()})
            body = json.dumps(KINDS if self.path == "/api/v1" else {"kind": "Namespace"})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Tests are quiet."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    server.server_close()
    thread.join()


def kubeconfig(tmp_path, server="https://127.0.0.1:1", user=None):
    path = tmp_path / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "dev",
                "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "users": [{"name": "u", "user": user or {"token": "abc"}}],
            }
        )
    )
    return path


@pytest.mark.parametrize("user", ["", "jane"])
def test_requests_act_as_the_user_named(tmp_path, api, user):
    """As with kubectl's --as, the header goes with every request, or with none."""
    url, seen = api
    client = connect(kubeconfig(tmp_path, url), as_user=user)
    client.get(KUBE_SYSTEM)
    client.close()

    assert seen
    assert {user} == {headers.get("impersonate-user", "") for headers in seen}
    assert {"Bearer abc"} == {headers["authorization"] for headers in seen}


def test_a_kubeconfig_that_runs_a_program_is_refused_with_the_way_out(tmp_path, monkeypatch):
    """A file may name any program; docs/decisions/0003."""
    monkeypatch.delenv("STOKER_ALLOW_EXEC", raising=False)
    path = kubeconfig(tmp_path, user={"exec": {"command": "aws"}})
    with pytest.raises(Stalled) as refused:
        connect(path)

    assert refused.value.code == "kubeconfig-exec-refused"
    assert "STOKER_ALLOW_EXEC=1" in refused.value.hint


def test_the_environment_allows_programs(tmp_path, monkeypatch):
    """Clouds hand out credentials that way; the program is run, and fails here."""
    monkeypatch.setenv("STOKER_ALLOW_EXEC", "1")
    exec_user = {
        "exec": {
            "command": str(tmp_path / "no-such-program"),
            "apiVersion": "client.authentication.k8s.io/v1",
            "interactiveMode": "Never",
        }
    }
    with pytest.raises(Stalled) as failed:
        connect(kubeconfig(tmp_path, user=exec_user)).get(KUBE_SYSTEM)

    assert failed.value.code == "login-failed"


def test_a_connection_without_verified_tls_is_told(tmp_path, capsys):
    """b.A row 38 (CVE-2022-31105): by every command, and in the status of the fleet."""
    path = kubeconfig(tmp_path, "http://127.0.0.1:1")
    with Session(FolderRepo(tmp_path), Target(path), shared_renderer=Renderer(1)) as session:
        session.connected()
        (warning,) = session.warnings

    assert (warning.code, warning.severity) == ("api-server-unverified", "warning")
    assert "warning: the API server is spoken to without TLS" in capsys.readouterr().err


def test_a_verified_connection_warns_of_nothing(tmp_path):
    client = connect(kubeconfig(tmp_path))
    client.close()

    assert client.warnings == ()


def test_the_context_is_named_even_when_it_is_the_current_one(tmp_path):
    assert context_name(kubeconfig(tmp_path)) == "dev"
    assert context_name(kubeconfig(tmp_path), "other") == "other"
    assert context_name(tmp_path / "missing") == ""


def test_a_missing_kubeconfig_is_named(tmp_path):
    with pytest.raises(Stalled) as missing:
        connect(tmp_path / "missing")

    assert missing.value.code == "kubeconfig-missing"
    assert str(tmp_path / "missing") in missing.value.message


ACCOUNT = "system:serviceaccount:stoker-system:stoker"


def a_token() -> str:
    """A service account's token, as far as its name goes."""
    claims = base64.urlsafe_b64encode(json.dumps({"sub": ACCOUNT}).encode()).decode().rstrip("=")
    return f"e30.{claims}.sig"


def test_the_caller_to_expect_stands_in_the_token(tmp_path):
    """b.C row 126: whoever writes makes sure of who it is."""
    assert ACCOUNT == expected_caller(kubeconfig(tmp_path, user={"token": a_token()}))


def test_the_caller_to_expect_stands_in_the_token_file(tmp_path):
    (tmp_path / "token").write_text(f"{a_token()}\n")

    assert ACCOUNT == expected_caller(kubeconfig(tmp_path, user={"tokenFile": "token"}))


def test_the_caller_to_expect_is_whom_we_act_as(tmp_path):
    assert "jane" == expected_caller(
        kubeconfig(tmp_path, user={"token": a_token()}), as_user="jane"
    )


@pytest.mark.parametrize(
    "user",
    [{"token": "opaque"}, {"tokenFile": "nowhere"}, {"exec": {"command": "login"}}],
    ids=["opaque", "unreadable", "program"],
)
def test_where_nothing_says_who_we_are_anybody_will_do(tmp_path, user):
    assert "" == expected_caller(kubeconfig(tmp_path, user=user))
