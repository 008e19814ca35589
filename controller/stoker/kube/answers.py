"""Answers of an API server as parsed JSON, or as errors of the tree.

In: Responses of a transport. Out: dicts, or errors from kube.errors. Used by kube.client.
"""

from __future__ import annotations

from typing import Any

from stoker.errors import StokerError
from stoker.kube.errors import Hide, api_error
from stoker.kube.patience import retry_after_seconds
from stoker.kube.transport import Response
from stoker.model.parsing import parsed_json

__all__ = ["StreamRefused", "error_of", "event_from_line", "parsed_answer"]

NO_CLOCK = 2**62
"""Later than any date: what has no Date of its own then asks for nothing."""


class StreamRefused(StokerError):
    """A transport got an error answer where a watch should have started."""

    code = "watch-refused"

    def __init__(self, response: Response) -> None:
        super().__init__(f"watch answered HTTP {response.status}")
        self.response = response


def parsed_answer(response: Response, what: str, hide: Hide = str) -> dict[str, Any]:
    """The JSON object of an answer; raises the error it stands for, without what `hide` hides.

    A proxy's HTML page with status 200 is a ServerFailure, never an empty object.
    """
    if response.status >= 300:
        raise error_of(response, what, hide)
    parsed = _parsed(response)
    if not isinstance(parsed, dict):
        kind = response.header("content-type") or "no content type"
        text = f"HTTP {response.status} with {kind} where JSON was due"
        raise api_error(502, text, what=what)
    return parsed


def event_from_line(line: bytes, what: str, hide: Hide = str) -> tuple[str, dict[str, Any]]:
    """Type and object of a watch event; raises the error that an ERROR event stands for."""
    try:
        event = parsed_json(line)
    except ValueError as error:
        raise api_error(502, "a watch event was not JSON", what=what) from error
    body = event.get("object") or {}
    if event.get("type") == "ERROR":
        raise api_error(int(body.get("code") or 500), body, what=what, hide=hide)
    return str(event.get("type")), body


def error_of(response: Response, what: str, hide: Hide = str) -> StokerError:
    """The error that an answer stands for, with the wait it asks for."""
    # A date without the answer's own Date is as good as none here: patience has obeyed it.
    after = retry_after_seconds(response, NO_CLOCK)
    return api_error(
        response.status, _parsed(response), what=what, retry_after_seconds=after or None, hide=hide
    )


def _parsed(response: Response) -> Any:
    """The body as JSON, or as text when it isn't JSON (a proxy's page, say)."""
    text = response.body.decode("utf-8", "replace")
    if "json" not in response.header("content-type"):
        return text
    try:
        return parsed_json(text)
    except ValueError:
        return text
