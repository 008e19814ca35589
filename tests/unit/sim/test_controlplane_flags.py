"""Command lines and files of the control plane."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stoker.sim.controlplane_binary import COMPONENTS
from stoker.sim.controlplane_flags import Ports, audit_policy, flags, kubeconfig, token_rows

PORTS = Ports(1, 2, 3, 4, 5)


@pytest.mark.parametrize("component", COMPONENTS)
def test_everything_listens_on_loopback_only(component):
    for flag in flags(component, Path("/x"), PORTS, audit=True):
        if "address" in flag or "url" in flag:
            assert "127.0.0.1" in flag


def test_only_an_audited_server_writes_an_audit_log():
    with_log = flags("kube-apiserver", Path("/x"), PORTS, audit=True)
    without = flags("kube-apiserver", Path("/x"), PORTS, audit=False)

    assert "--audit-log-path=/x/audit.log" in with_log
    assert set(without) < set(with_log)
    assert audit_policy()["rules"] == [{"level": "Metadata"}]


def test_rbac_and_fairness_stay_on():
    """What is switched off here is not tested anywhere."""
    text = " ".join(flags("kube-apiserver", Path("/x"), PORTS, audit=False))

    assert "--authorization-mode=RBAC" in text
    assert "priority-and-fairness" not in text


def test_unknown_components_are_refused():
    with pytest.raises(ValueError, match="no such component"):
        flags("kube-proxy", Path("/x"), PORTS, audit=False)


def test_the_kubeconfig_verifies_the_server():
    config = json.loads(kubeconfig("https://127.0.0.1:3", Path("/x/ca.crt"), "secret", "admin"))

    assert {"server": "https://127.0.0.1:3", "certificate-authority": "/x/ca.crt"} == (
        config["clusters"][0]["cluster"]
    )
    assert {"token": "secret"} == config["users"][0]["user"]


def test_only_the_admin_is_a_master():
    rows = token_rows({"admin": "t1", "llm/stoker": "t2"}).splitlines()

    assert rows == [
        't1,admin,1,"system:masters"',
        't2,system:serviceaccount:llm:stoker,2,"system:serviceaccounts,system:serviceaccounts:llm"',
    ]
