import pytest

from stoker.model.refs import ObjectRef
from stoker.observe.keys import NODES, PODS, WatchKey, base_keys


@pytest.mark.parametrize(
    ("kind", "namespace", "label"),
    [
        ("Node", "", "nodes"),
        ("Deployment", "llm", "deployments/llm"),
        ("NetworkPolicy", "", "networkpolicies"),
        ("Ingress", "", "ingresses"),
        ("Gateway", "", "gateways"),
    ],
)
def test_unknown_things_are_named_as_kubectl_names_them(kind, namespace, label):
    assert WatchKey("g", kind, "v1", namespace).label == label


def test_a_key_covers_its_namespace_or_all_of_them_in_any_version():
    ref = ObjectRef("apps", "Deployment", "llm", "a", "v1beta1")

    assert WatchKey("apps", "Deployment", "v1").covers(ref)
    assert WatchKey("apps", "Deployment", "v1", "llm").covers(ref)
    assert not WatchKey("apps", "Deployment", "v1", "other").covers(ref)
    assert not PODS.covers(ref)


def test_base_keys_watch_deployments_by_namespace_or_everywhere():
    narrow = [key for key in base_keys(["b", "a", "b"]) if key.kind == "Deployment"]
    wide = [key for key in base_keys(["a", ""]) if key.kind == "Deployment"]

    assert [key.namespace for key in narrow] == ["a", "b"]
    assert [key.namespace for key in wide] == [""]
    assert NODES in base_keys([])
