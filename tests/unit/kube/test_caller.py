"""Whom the API server takes us for is checked before anything is written."""

from __future__ import annotations

import base64
import json

import pytest

from stoker.errors import Stalled
from stoker.kube.caller import account_of_token, bound_node, check_caller
from stoker.kube.errors import api_error

ACCOUNT = "system:serviceaccount:stoker-system:stoker"


class Server:
    """Answers a SelfSubjectReview."""

    def __init__(
        self, user: str = "", error: Exception | None = None, extra: dict | None = None
    ) -> None:
        self._user, self._error, self._extra = user, error, extra

    def create(self, manifest: dict, *, manager: str) -> dict:
        assert "SelfSubjectReview" == manifest["kind"]
        if self._error is not None:
            raise self._error
        extra = {} if self._extra is None else {"extra": self._extra}
        return {"status": {"userInfo": {"username": self._user, **extra}}}


def a_token(**claims: object) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.sig"


@pytest.mark.parametrize(
    ("seen", "expected"),
    [("system:anonymous", ""), ("", ""), ("system:anonymous", ACCOUNT), ("jane", ACCOUNT)],
    ids=["anonymous", "nobody", "credentials lost", "somebody else"],
)
def test_another_caller_than_expected_stops_everything(seen, expected):
    """b.C row 126: a client library sent no credentials, and nobody noticed."""
    with pytest.raises(Stalled) as caught:
        check_caller(Server(seen), expected)  # type: ignore[arg-type]

    assert "wrong-caller" == caught.value.code
    assert (seen or "nobody") in caught.value.message


@pytest.mark.parametrize("expected", ["", ACCOUNT], ids=["unknown", "known"])
def test_the_expected_caller_may_go_on(expected):
    assert ACCOUNT == check_caller(Server(ACCOUNT), expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("code", [403, 404], ids=["forbidden", "not served"])
def test_a_server_that_does_not_say_is_believed(code):
    """The question exists since Kubernetes 1.28, and may be forbidden."""
    error = api_error(code, "404 page not found", what="create")

    assert "" == check_caller(Server(error=error), ACCOUNT)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("token", "account"),
    [
        (a_token(sub=ACCOUNT), ACCOUNT),
        (a_token(sub="jane@example.com"), ""),
        (a_token(iss="x"), ""),
        (a_token(sub=7), ""),
        ("opaque", ""),
        ("a.b.c", ""),
        ("a.!!!.c", ""),
        ("", ""),
    ],
    ids=["account", "person", "no subject", "number", "opaque", "no JSON", "no base64", "none"],
)
def test_the_account_that_a_token_names(token, account):
    assert account == account_of_token(token)


def test_a_token_that_is_bound_to_a_pod_names_its_node():
    extra = {
        "authentication.kubernetes.io/node-name": ["l4-od-1"],
        "authentication.kubernetes.io/node-uid": ["6a0c1f0e"],
    }

    assert ("l4-od-1", "6a0c1f0e") == bound_node(Server(ACCOUNT, extra=extra))  # type: ignore[arg-type]


@pytest.mark.parametrize("extra", [None, {}, {"authentication.kubernetes.io/node-name": []}])
def test_a_token_that_is_bound_to_no_node_names_none(extra):
    assert ("", "") == bound_node(Server(ACCOUNT, extra=extra))  # type: ignore[arg-type]


def test_a_server_without_the_question_names_no_node():
    error = api_error(404, "404 page not found", what="POST selfsubjectreviews")

    assert ("", "") == bound_node(Server(error=error))  # type: ignore[arg-type]
