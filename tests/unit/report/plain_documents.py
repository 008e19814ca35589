"""Documents for the tests of dumping status files and of reading them back."""

from __future__ import annotations

from hypothesis import strategies as st

STATUS = {
    "apiVersion": "stoker.dev/v1alpha1",
    "metadata": {"name": "prod-eu"},
    "controller": {"version": "0.1.0", "observedAt": "2026-11-29T03:05:02Z", "heartbeat": "1h"},
    "lastAppliedRevision": "main@sha1:9be0a17c5d2e8f4016ab73d90c1e5f2b48a6d7e3",
    "conditions": [{"type": "Ready", "status": "False", "message": "1 of 7: llm/qwen-7b"}],
    "attention": [
        {
            "unit": "ModelService/llm/qwen-7b",
            "replicas": {"desired": 4, "ready": 3},
            "source": {"path": "models/qwen-7b.yaml", "line": 21},
        }
    ],
    "errors": [],
    "nodes": ["l4-od-1", "l4-od-2"],
    "truncated": False,
    "nothing": None,
    "deep": {"a": {"b": {"c": 1}, "list": [[1, 2], [{"x": "z"}]]}},
}

TEXT = """\
apiVersion: stoker.dev/v1alpha1
metadata: {name: prod-eu}
controller: {version: 0.1.0, observedAt: "2026-11-29T03:05:02Z", heartbeat: 1h}
lastAppliedRevision: main@sha1:9be0a17c5d2e8f4016ab73d90c1e5f2b48a6d7e3
conditions:
- {type: Ready, status: "False", message: "1 of 7: llm/qwen-7b"}
attention:
- unit: ModelService/llm/qwen-7b
  replicas: {desired: 4, ready: 3}
  source: {path: models/qwen-7b.yaml, line: 21}
errors: []
nodes: [l4-od-1, l4-od-2]
truncated: false
nothing: null
deep:
  a:
    b: {c: 1}
    list:
    - [1, 2]
    -
      - {x: z}
"""

scalars = st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"))
numberish = st.text("0123456789eE+-._:xobTZ ", max_size=10)
data = st.recursive(
    scalars | numberish,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)
