"""Names from files stand in addresses; whatever they hold, they stay one part of one."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from stoker.kube.requests import object_path
from stoker.model.ports import ApiResource
from stoker.model.refs import ObjectRef

SERVED = ApiResource("apps", "v1", "Deployment", "deployments", namespaced=True)


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_a_name_is_one_part_of_the_path(namespace, name):
    """b.C row 129 (CVE-2026-53572): no name adds a segment, a query or another object."""
    try:
        path = object_path(SERVED, ObjectRef("apps", "Deployment", namespace, name), "scale")
    except UnicodeEncodeError:
        return  # a lone surrogate stands in no file

    parts = urlsplit(path).path.split("/")
    assert (urlsplit(path).query, urlsplit(path).fragment) == ("", "")
    assert 9 == len(parts)
    assert (unquote(parts[5]), unquote(parts[7])) == (namespace, name)
