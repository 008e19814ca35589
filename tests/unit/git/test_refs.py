from __future__ import annotations

import pytest

from stoker.errors import Stalled
from stoker.git.refs import candidates, check_ref, choose, listed, short_name

A, B = "a" * 40, "b" * 40


@pytest.mark.parametrize(
    "ref",
    ["", "-x", "--upload-pack=x", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "@",
     "a@{1}", "a.lock", "a.lock/b", ".a", "a/.b", "a//b", "/a", "a/", "a.", "a\nb", "a\x7f", "x" * 256],
)  # fmt: skip
def test_names_that_git_forbids_are_refused(ref):
    """b.G row 111."""
    with pytest.raises(Stalled) as caught:
        check_ref(ref)

    assert caught.value.code == "ref-invalid"
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("ref", ["main", "refs/heads/main", "feature/x-1", "v1.2.3", A, "HEAD"])
def test_ordinary_names_are_taken(ref):
    assert check_ref(ref) == ref


def test_a_short_name_may_be_a_branch_or_a_tag():
    assert candidates("main") == ("refs/heads/main", "refs/tags/main")
    assert candidates("refs/tags/v1") == ("refs/tags/v1",)


def test_short_names_for_people():
    names = ["refs/heads/main", "refs/tags/v1", "refs/stoker/x"]

    assert [short_name(name) for name in names] == ["main", "v1", "refs/stoker/x"]


def test_a_tag_is_peeled_and_lookalikes_are_not_chosen():
    """Patterns of ls-remote match the end of a name, so others come along."""
    answer = listed(
        f"{A}\trefs/tags/v1\n{B}\trefs/tags/v1^{{}}\n{A}\trefs/heads/refs/tags/v1\nnoise\n".encode()
    )

    found = choose("v1", candidates("v1"), answer)

    assert found is not None
    assert (found.oid, found.commit) == (A, B)


def test_a_branch_and_a_tag_that_agree_are_no_trouble():
    found = choose("v1", candidates("v1"), {"refs/heads/v1": A, "refs/tags/v1": A})

    assert found is not None
    assert found.name == "refs/heads/v1"
