"""The stand-ins answer as the clouds document it; what the pollers are tested against."""

from __future__ import annotations

import http.client
import json
import threading

import pytest

from unit.node.metadata_services import (
    EVENTS_PATH,
    PREEMPTED_PATH,
    REBALANCE_PATH,
    SPOT_PATH,
    TOKEN_PATH,
    AwsService,
    AzureService,
    Fault,
    GcpService,
)

TTL = "X-aws-ec2-metadata-token-ttl-seconds"
EVENTS = f"{EVENTS_PATH}?api-version=2020-07-01"


def ask(service, path, method="GET", body=None, timeout=5.0, **headers):
    """Status, body and headers, asked with nothing of ours."""
    connection = http.client.HTTPConnection(service.address, timeout=timeout)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        connection.close()


def token(service, ttl="21600"):
    return ask(service, TOKEN_PATH, "PUT", **{TTL: ttl})[1]


def test_aws_gives_nothing_without_a_token():
    with AwsService() as service:
        assert ask(service, SPOT_PATH)[0] == 401
        assert ask(service, SPOT_PATH, X_aws_ec2_metadata_token="made-up")[0] == 401


@pytest.mark.parametrize("ttl", ["", "0", "21601", "a"])
def test_aws_gives_no_token_without_a_lifetime_that_it_takes(ttl):
    with AwsService() as service:
        assert ask(service, TOKEN_PATH, "PUT", **{TTL: ttl})[0] == 400


def test_aws_says_404_as_long_as_there_is_no_notice():
    with AwsService() as service:
        known = token(service)

        for path in (SPOT_PATH, REBALANCE_PATH):
            assert ask(service, path, X_aws_ec2_metadata_token=known)[0] == 404


def test_aws_tells_action_and_rebalance_and_forgets_tokens():
    with AwsService() as service:
        service.action = ("terminate", "2026-11-30T08:22:00Z")
        service.rebalance = "2026-11-30T08:10:00Z"
        known = token(service)

        spot = ask(service, SPOT_PATH, X_aws_ec2_metadata_token=known)[1]
        early = ask(service, REBALANCE_PATH, X_aws_ec2_metadata_token=known)[1]
        service.forget_tokens()

        assert json.loads(spot) == {"action": "terminate", "time": "2026-11-30T08:22:00Z"}
        assert json.loads(early) == {"noticeTime": "2026-11-30T08:10:00Z"}
        assert ask(service, SPOT_PATH, X_aws_ec2_metadata_token=known)[0] == 401


@pytest.mark.parametrize("service", [AwsService, GcpService, AzureService])
def test_a_request_that_came_through_a_proxy_is_refused(service):
    with service() as running:
        path = {AwsService: TOKEN_PATH, GcpService: PREEMPTED_PATH}.get(service, EVENTS)
        headers = {"Metadata-Flavor": "Google", "Metadata": "true", "X-Forwarded-For": "10.0.0.1"}

        assert ask(running, path, **headers)[0] in {400, 403}


def test_google_wants_its_header():
    with GcpService() as service:
        assert ask(service, PREEMPTED_PATH)[0] == 403

        status, body, headers = ask(service, PREEMPTED_PATH, Metadata_Flavor="Google")

    assert (status, body, headers["Metadata-Flavor"]) == (200, "FALSE", "Google")


def test_google_waits_for_a_change_and_for_no_longer_than_it_is_told():
    with GcpService() as service:
        waiting = f"{PREEMPTED_PATH}?wait_for_change=true"
        _, unchanged, headers = ask(service, f"{waiting}&timeout_sec=0", Metadata_Flavor="Google")
        change = threading.Timer(0.05, service.set_preempted, [True])
        change.start()
        _, changed, _ = ask(service, waiting, Metadata_Flavor="Google")
        change.join()
        old = headers["ETag"]
        _, missed, _ = ask(service, f"{waiting}&last_etag={old}", Metadata_Flavor="Google")

    assert (unchanged, changed, missed) == ("FALSE", "TRUE", "TRUE")


def test_azure_wants_its_header_and_a_version():
    with AzureService() as service:
        assert ask(service, EVENTS)[0] == 400
        assert ask(service, EVENTS_PATH, Metadata="true")[0] == 400
        assert ask(service, EVENTS, Metadata="true")[0] == 200


def test_azure_starts_an_event_that_is_acknowledged_and_counts_incarnations():
    with AzureService() as service:
        service.schedule("602d9444-d2cd-49c7-8624-8643e7171297")
        before = json.loads(ask(service, EVENTS, Metadata="true")[1])
        body = json.dumps({"StartRequests": [{"EventId": before["Events"][0]["EventId"]}]})

        status = ask(service, EVENTS, "POST", body, Metadata="true")[0]
        after = json.loads(ask(service, EVENTS, Metadata="true")[1])
        unknown = json.dumps({"StartRequests": [{"EventId": "made-up"}]})
        refused = ask(service, EVENTS, "POST", unknown, Metadata="true")[0]

    assert (status, refused) == (200, 400)
    assert after["DocumentIncarnation"] == before["DocumentIncarnation"] + 1
    assert after["Events"][0]["EventStatus"] == "Started"
    assert after["Events"][0]["NotBefore"] == ""


@pytest.mark.parametrize(
    ("fault", "status"), [(Fault.ERROR, 500), (Fault.BUSY, 503), (Fault.REDIRECT, 302)]
)
def test_a_fault_answers_every_request_until_it_is_healed(fault, status):
    with GcpService() as service:
        service.fault = fault
        broken = ask(service, PREEMPTED_PATH, Metadata_Flavor="Google")[0]
        service.fault = None

        assert (broken, ask(service, PREEMPTED_PATH, Metadata_Flavor="Google")[0]) == (status, 200)


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.CUT])
def test_a_fault_leaves_the_asker_without_an_answer(fault):
    with GcpService() as service:
        service.fault = fault

        with pytest.raises((TimeoutError, http.client.HTTPException)):
            ask(service, PREEMPTED_PATH, timeout=0.2, Metadata_Flavor="Google")
