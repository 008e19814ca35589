"""Stories begin with copies of worlds: a copy is the same, and it is another."""

from __future__ import annotations

from stoker.model.refs import ObjectRef
from stories.files import the_village
from stories.looks import a_pass, is_clean, pod_uids, standing


def test_a_copied_world_stands_where_the_first_does_and_goes_its_own_way(settled):
    first, second = settled(the_village()), settled(the_village())
    before = standing(first)
    assert before
    assert standing(second) == before
    assert pod_uids(second) == pod_uids(first)

    second.cluster.delete(ObjectRef("", "Node", "", "gpu-1"))
    second.commit("A page", {"README.md": "ours\n"})
    second.settle()
    a_pass(first)

    assert len(first.objects("", "Node")) == len(second.objects("", "Node")) + 1
    assert standing(first) == before
    assert is_clean(first)
    assert not (first.work_tree / "README.md").exists()
