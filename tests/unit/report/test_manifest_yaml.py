"""Manifests read back as they were, and look as people write them."""

from hypothesis import example, given
from hypothesis import strategies as st

from stoker.render.documents import load_documents
from stoker.report.manifest_yaml import manifest_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(TEXT.filter(bool), inner, max_size=4)
    ),
    max_leaves=20,
)


def read(text):
    (document,) = load_documents(text, "x.yaml")
    return document.value


@given(VALUES)
@example("a\nb\n")
@example("a\n\n\nb")
@example("a\n\n")
@example("\na")
@example("  a\nb")
@example("a\n  \n b: c\n# d\n")
@example("a\tb\n\tc\n")
@example("---\n...\n")
@example("1e3")
@example("12:30")
@example("yes")
@example("a\r\nb")
@example("a\x85b\nc")
@example([[["x\ny"], {}], [{"a": [], "b": "x\ny\n"}]])
def test_what_is_written_is_read_back(value):
    """As kubectl reads it: a bare `1e3` would be a number, `yes` a boolean."""
    manifest = {"kind": "ConfigMap", "data": {"key": value}}

    assert manifest == read(manifest_text(manifest))


def test_it_looks_as_people_write_it():
    manifest = {
        "kind": "Deployment",
        "spec": {
            "replicas": 2,
            "containers": [
                {"name": "c", "args": ["--port", "8000"], "env": []},
                {"name": "d", "command": ["sh", "-c", "set -e\nexec vllm\n"]},
            ],
        },
    }

    assert manifest_text(manifest) == (
        "kind: Deployment\n"
        "spec:\n"
        "  replicas: 2\n"
        "  containers:\n"
        "  - name: c\n"
        "    args:\n"
        '    - "--port"\n'
        '    - "8000"\n'
        "    env: []\n"
        "  - name: d\n"
        "    command:\n"
        "    - sh\n"
        '    - "-c"\n'
        "    - |\n"
        "      set -e\n"
        "      exec vllm\n"
    )
