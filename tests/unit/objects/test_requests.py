import pytest

from stoker.model.shape import Resources
from stoker.objects.requests import requests_of_spec, resources_from


def container(name="c", restart="", **amounts):
    body = {"name": name, "resources": {"requests": amounts}}
    return {**body, "restartPolicy": restart} if restart else body


def cpu_of(spec, statuses=()):
    return requests_of_spec(spec, statuses).cpu_millis


def test_containers_are_summed_and_one_pod_is_counted():
    spec = {"containers": [container("a", cpu="1", memory="1Gi"), container("b", cpu="500m")]}

    assert requests_of_spec(spec) == Resources(cpu_millis=1500, memory_bytes=2**30, pods=1)


def test_devices_are_kept_by_name_and_storage_is_left_out():
    spec = {"containers": [container(**{"nvidia.com/gpu": "4", "ephemeral-storage": "1Gi"})]}

    assert requests_of_spec(spec).extended == (("nvidia.com/gpu", 4),)


def test_a_limit_without_a_request_counts_as_a_request():
    """GPUs are usually written as limits only; the API server copies them in live pods."""
    spec = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 2, "cpu": 4}}}]}

    assert requests_of_spec(spec).device("nvidia.com/gpu") == 2
    assert cpu_of(spec) == 4000


def test_a_request_wins_over_its_limit():
    resources = {"limits": {"cpu": 4}, "requests": {"cpu": 1}}

    assert cpu_of({"containers": [{"name": "c", "resources": resources}]}) == 1000


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ([container("i", cpu="1")], 2000),
        ([container("i", cpu="5")], 5000),
        ([container("i", cpu="5"), container("j", cpu="4")], 5000),
        ([container("s", "Always", cpu="1")], 3000),
        ([container("s", "Always", cpu="1"), container("i", cpu="5")], 6000),
        ([container("i", cpu="5"), container("s", "Always", cpu="1")], 5000),
    ],
    ids=["small", "large", "not summed", "sidecar", "sidecar first", "sidecar last"],
)
def test_init_containers_count_by_their_peak_and_sidecars_stay(init, expected):
    """The rule of KEP-753 (sidecar containers)."""
    spec = {"containers": [container(cpu="2")], "initContainers": init}

    assert cpu_of(spec) == expected


def test_runtime_overhead_is_added():
    spec = {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "1Mi"}}

    assert cpu_of(spec) == 1250


def test_requests_of_the_whole_pod_replace_the_sum():
    spec = {"containers": [container(cpu="1", memory="1Gi")], "resources": {"requests": {"cpu": 3}}}

    assert requests_of_spec(spec) == Resources(cpu_millis=3000, memory_bytes=2**30, pods=1)


def test_while_a_pod_shrinks_it_still_holds_the_larger_amount():
    statuses = ({"name": "c", "allocatedResources": {"cpu": "4"}}, {"name": "other"})

    assert cpu_of({"containers": [container(cpu="1")]}, statuses) == 4000


def test_a_pod_without_requests_takes_a_place_only():
    assert requests_of_spec({"containers": [{"name": "c"}]}) == Resources(pods=1)


def test_allocatable_is_read_and_sorted():
    amounts = {
        "cpu": "8",
        "memory": "64Gi",
        "pods": "110",
        "b/x": "1",
        "a/y": "2",
        "hugepages-2Mi": "0",
    }

    assert resources_from(amounts) == Resources(8000, 64 * 2**30, 110, (("a/y", 2), ("b/x", 1)))


def test_an_unreadable_amount_is_an_error_and_not_zero():
    with pytest.raises(ValueError, match="not a quantity"):
        requests_of_spec({"containers": [container(cpu="many")]})
