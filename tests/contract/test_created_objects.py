"""Minimal objects of each kind come out of both servers as recorded from the real one."""

from __future__ import annotations

import json

import pytest

from contract.api import deployment, template

CREATED = {
    "Service": {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}},
    "StatefulSet": deployment(serviceName="s"),
    "DaemonSet": {"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template()}},
    "ReplicaSet": {"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template()}},
    "Job": {"spec": {"template": template(restartPolicy="Never")}},
    "CronJob": {
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"spec": {"template": template(restartPolicy="Never")}},
        }
    },
    "Pod": {"spec": template()["spec"]},
    "ServiceAccount": {},
    "HorizontalPodAutoscaler": {
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
            "maxReplicas": 3,
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 10}},
        }
    },
    "PodDisruptionBudget": {"spec": {"maxUnavailable": 1, "selector": {}}},
    "Lease": {"spec": {"holderIdentity": ""}},
    "Role": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    "RoleBinding": {
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "x"}, {"kind": "User", "name": "u"}],
    },
    "NetworkPolicy": {"spec": {"podSelector": {}}},
    "EndpointSlice": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.7"]}],
        "ports": [{"port": 80}],
    },
    "Event": {
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "NAMESPACE"},
        "reason": "Seen",
    },
    "Deployment": deployment(
        template=template(
            {
                "name": "c",
                "image": "x@sha256:" + "0" * 64,
                "livenessProbe": {"httpGet": {"port": 80}},
                "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
                "env": [{"name": "P", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": False}],
            },
            volumes=[
                {"name": "v"},
                {"name": "s", "secret": {"secretName": "q"}},
                {"name": "c", "configMap": {"name": "q"}},
                {"name": "h", "hostPath": {"path": "/x"}},
                {
                    "name": "p",
                    "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]},
                },
            ],
        )
    ),
}
"""A minimal object of each kind; the answer must be the same on both servers."""


@pytest.mark.parametrize("kind", sorted(CREATED))
def test_objects_come_out_as_recorded(server, kind, golden_objects):
    """Defaults, what is printed when empty, status, entries: compared with the recorded answer."""
    fields = json.loads(json.dumps(CREATED[kind]).replace("NAMESPACE", server.ns))
    made = server.post(kind, {"metadata": {"name": "x"}, **fields}, by="p")
    assert made.status == 201, made.message

    assert golden_objects.check(kind, server, made.body)
