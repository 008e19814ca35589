"""When two spellings are the same value."""

import pytest

from stoker.objects.canonical import Sameness, is_empty, sameness, with_plain_data
from stoker.objects.schema_table import ANY, schema_for

SAME, UNSETTLED, DIFFERENT = Sameness.SAME, Sameness.UNSETTLED, Sameness.DIFFERENT


def kind_at(path, group="apps", kind="Deployment"):
    found = schema_for(group, kind).root
    for key in path.split("."):
        below = found.element if key == "[]" else found.member(key)
        assert below is not None
        found = below
    return found


TEMPLATE = "spec.template.spec"
CPU = f"{TEMPLATE}.containers.[].resources.limits.cpu"
ENV = f"{TEMPLATE}.containers.[].env.[]"


@pytest.mark.parametrize(
    ("path", "sent", "live", "verdict"),
    [
        (CPU, "1000m", "1", SAME),
        (CPU, 1, "1", SAME),
        (CPU, "2", "1", DIFFERENT),
        (CPU, "no quantity", "1", DIFFERENT),
        (f"{TEMPLATE}.containers.[].resources.limits.memory", "1000M", "1G", SAME),
        (f"{TEMPLATE}.containers.[].resources.limits.memory", "1024Mi", "1Gi", SAME),
        (f"{TEMPLATE}.volumes.[].emptyDir.sizeLimit", "1024Mi", "1Gi", SAME),
        ("spec.replicas", 2, 2.0, SAME),
        ("spec.replicas", True, 1, DIFFERENT),
        (f"{ENV}.value", "", None, SAME),
        (f"{ENV}.value", "1", None, DIFFERENT),
        (f"{ENV}.name", "", None, DIFFERENT),
        (f"{TEMPLATE}.hostNetwork", False, None, SAME),
        (f"{TEMPLATE}.automountServiceAccountToken", False, None, DIFFERENT),
        ("spec.minReadySeconds", 0, None, SAME),
        ("spec.replicas", 0, None, DIFFERENT),
        ("spec.replicas", None, 1, SAME),
        ("spec.strategy.rollingUpdate.maxSurge", 1, "1", DIFFERENT),
        ("spec.strategy.rollingUpdate.maxSurge", "25%", "25%", SAME),
        (f"{TEMPLATE}.containers.[].args", [], None, SAME),
        (f"{TEMPLATE}.containers.[].args", ["a"], ["a"], SAME),
        (f"{TEMPLATE}.containers.[].args", ["a"], ["a", "b"], DIFFERENT),
        (f"{TEMPLATE}.containers.[].args", ["a"], "a", DIFFERENT),
        (f"{TEMPLATE}.nodeSelector", {"a": "1"}, {"a": "1"}, SAME),
        (f"{TEMPLATE}.nodeSelector", {"a": "1"}, {"a": "1", "b": "1"}, DIFFERENT),
        (f"{TEMPLATE}.nodeSelector", {}, None, SAME),
        (f"{TEMPLATE}.nodeSelector", {"a": "1"}, ["a"], DIFFERENT),
        (
            f"{ENV}.valueFrom.fieldRef",
            {"fieldPath": "a"},
            {"apiVersion": "v1", "fieldPath": "a"},
            SAME,
        ),
        (
            f"{ENV}.valueFrom.fieldRef",
            {"fieldPath": "a"},
            {"apiVersion": "v2", "fieldPath": "a"},
            UNSETTLED,
        ),
        (
            f"{ENV}.valueFrom.fieldRef",
            {"fieldPath": "a", "nonsense": 1},
            {"fieldPath": "a"},
            DIFFERENT,
        ),
        (
            f"{ENV}.valueFrom.resourceFieldRef",
            {"resource": "limits.cpu"},
            {"resource": "limits.cpu", "divisor": "0"},
            SAME,
        ),
        (f"{TEMPLATE}.tolerations", [{"key": "a"}], [{"key": "a", "operator": "Equal"}], UNSETTLED),
        (f"{TEMPLATE}.tolerations", [{"key": "a"}], [{"key": "a", "value": ""}], SAME),
        (
            "spec.selector",
            {"matchLabels": {"a": "1"}},
            {"matchLabels": {"a": "1", "b": "2"}},
            DIFFERENT,
        ),
    ],
)
def test_fields_of_builtin_kinds(path, sent, live, verdict):
    """cases.md row 47: 1000m and 1, 1000M and 1G are no drift."""
    assert verdict is sameness(sent, live, kind_at(path))


@pytest.mark.parametrize(
    ("sent", "live", "verdict"),
    [
        ("1000m", "1", DIFFERENT),
        (1, 1, SAME),
        ("", None, UNSETTLED),
        ({}, None, UNSETTLED),
        ("x", None, DIFFERENT),
        (None, None, SAME),
        ([{"a": 1}], [{"a": 1}], SAME),
        ([{"a": 1}], [{"a": 1, "b": 2}], UNSETTLED),
        ([{"a": 1}], [{"a": 2}], DIFFERENT),
    ],
)
def test_custom_resources_are_stored_as_they_are_sent(sent, live, verdict):
    """ssa-facts 54, 55, 75: only CRD defaults may differ, and only a dry run knows them."""
    assert verdict is sameness(sent, live, ANY)


@pytest.mark.parametrize(
    ("sent", "live", "verdict"),
    [
        ("aGk=", "aGk=", SAME),
        ("aG\nk=", "aGk=", SAME),
        ("aGk=", "aGo=", DIFFERENT),
        ("a", "aGk=", DIFFERENT),
        (5, "aGk=", DIFFERENT),
    ],
)
def test_bytes_may_be_broken_into_lines(sent, live, verdict):
    assert verdict is sameness(sent, live, kind_at("data.x", "", "Secret"))


@pytest.mark.parametrize("value", [None, "", 0, False, {}, [], 0.0])
def test_nothing_is_empty(value):
    assert is_empty(value)


@pytest.mark.parametrize("value", ["0", 1, True, {"a": None}, [None]])
def test_something_is_not_empty(value):
    assert not is_empty(value)


def secret(**fields):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **fields}


def test_texts_of_a_secret_are_sent_as_data():
    """ssa-facts 75: a key of stringData that leaves Git would stay in data for ever."""
    found = with_plain_data(secret(stringData={"a": "hi"}, data={"b": "eA=="}))

    assert found == secret(data={"a": "aGk=", "b": "eA=="})


@pytest.mark.parametrize(
    "manifest",
    [
        secret(data={"a": "eA=="}),
        secret(stringData={"a": 5}),
        secret(stringData=["a"]),
        secret(stringData={"a": "x"}, data=["b"]),
        {"apiVersion": "v1", "kind": "ConfigMap", "stringData": {"a": "x"}},
        {"apiVersion": "example.org/v1", "kind": "Secret", "stringData": {"a": "x"}},
    ],
    ids=["plain", "number", "list", "data-list", "config-map", "other-group"],
)
def test_everything_else_is_left_for_the_server_to_judge(manifest):
    assert with_plain_data(manifest) is manifest


def test_quantities_of_free_names_may_be_filled_in():
    """The server completes the maps of a LimitRange."""
    limits = kind_at("spec.limits", "", "LimitRange")
    sent = [{"type": "Container", "max": {"cpu": "1"}}]
    live = [{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "1"}}]
    more = [{"type": "Container", "max": {"cpu": "1", "memory": "1Gi"}}]

    assert sameness(sent, live, limits) is UNSETTLED
    assert sameness(sent, more, limits) is UNSETTLED
