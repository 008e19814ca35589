"""Deployments as hypothesis draws them: small alphabets, so that two of them often meet."""

import copy
from typing import Any

from hypothesis import strategies as st

texts = st.text("abc", min_size=1, max_size=2)
labels = st.dictionaries(texts, st.sampled_from(["1", "2"]), max_size=2)

BASE: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "llm"},
    "spec": {"selector": {"matchLabels": {"app": "x"}}},
}

env = st.lists(
    st.fixed_dictionaries({"name": texts}, optional={"value": st.text("ab", max_size=1)}),
    max_size=3,
    unique_by=lambda item: item["name"],
)
ports = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.integers(1, 3)}, optional={"protocol": st.sampled_from(["TCP", "UDP"])}
    ),
    max_size=2,
    unique_by=lambda item: (item["containerPort"], item.get("protocol", "TCP")),
)
resources = st.fixed_dictionaries(
    {}, optional={"limits": st.dictionaries(texts, st.sampled_from(["1", "2"]), max_size=2)}
)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": texts, "image": texts},
        optional={
            "args": st.lists(texts, max_size=2),
            "env": env,
            "resources": resources,
            "ports": ports,
        },
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda item: item["name"],
)


@st.composite
def deployments(draw):
    """A Deployment that fits its schema."""
    body = copy.deepcopy(BASE)
    body["spec"]["template"] = {
        "metadata": {"labels": draw(labels)},
        "spec": {"containers": draw(containers)},
    }
    body["metadata"]["annotations"] = draw(labels)
    if draw(st.booleans()):
        body["metadata"]["finalizers"] = draw(st.lists(texts, max_size=3, unique=True))
    if draw(st.booleans()):
        body["spec"]["replicas"] = draw(st.integers(0, 3))
    return body
