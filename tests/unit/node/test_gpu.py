"""GPUs through NVML: what cannot be read is absent, and a missing driver is not a missing GPU."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.node.gpu import GpuReading, Gpus, Nvml, joules_between, load_nvml
from unit.node.fake_nvml import CODES, FakeNvml, Gpu, NVMLError


def read(*gpus, **more):
    return Gpus(lambda: FakeNvml(*gpus, **more)).read()


def test_busy_shares_are_averaged_and_memory_is_summed():
    reading = read(
        Gpu("GPU-1", percent=20, used_bytes=1, millijoules=7),
        Gpu("GPU-0", percent=40, used_bytes=2, millijoules=5),
    )

    assert reading.count == 2
    assert reading.products == ("NVIDIA H200",)
    assert reading.utilization == pytest.approx(0.3)
    assert reading.memory_used_bytes == 3
    assert reading.energy_millijoules == (("GPU-0", 5), ("GPU-1", 7))
    assert reading.why == ""


@pytest.mark.parametrize(
    "error",
    [
        "NVML_ERROR_LIBRARY_NOT_FOUND",
        "NVML_ERROR_DRIVER_NOT_LOADED",
        "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
        "NVML_ERROR_NO_PERMISSION",
        "NVML_ERROR_UNKNOWN",
    ],
)
def test_without_a_driver_everything_is_unknown_with_the_reason(error):
    reading = read(Gpu(), init_error=error)

    assert reading == GpuReading(why=f"NVML: {NVMLError(CODES[error])}")


def test_without_the_library_everything_is_unknown_with_the_reason():
    assert Gpus(lambda: "not installed").read() == GpuReading(why="not installed")


def test_a_machine_without_gpus_has_none_and_measures_nothing():
    assert read() == GpuReading(count=0)


def test_a_lost_gpu_makes_all_of_it_unknown_and_the_library_is_opened_anew():
    """What the others say is no sum over the machine."""
    nvml = FakeNvml(Gpu("GPU-0"), Gpu("GPU-1", lost=True))
    gpus = Gpus(lambda: nvml)
    lost = gpus.read()
    nvml.gpus[1].lost = False
    back = gpus.read()

    assert lost == GpuReading(why="NVML: GPU is lost")
    assert back.count == 2
    assert (nvml.opened, nvml.closed) == (2, 1)


def test_a_driver_that_comes_later_is_found():
    nvml = FakeNvml(Gpu(), init_error="NVML_ERROR_DRIVER_NOT_LOADED")
    gpus = Gpus(lambda: nvml)
    before = gpus.read()
    nvml.init_error = ""

    assert (before.count, gpus.read().count) == (None, 1)


@pytest.mark.parametrize("error", ["NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_NO_PERMISSION"])
@pytest.mark.parametrize(
    ("what", "field"),
    [
        ("percent", "utilization"),
        ("used_bytes", "memory_used_bytes"),
        ("millijoules", "energy_millijoules"),
    ],
)
def test_what_one_gpu_does_not_say_is_absent_for_the_machine_and_spoils_nothing_else(
    what, field, error
):
    """MIG hides the utilization, GPUs before Volta count no energy."""
    reading = read(Gpu("GPU-0"), Gpu("GPU-1", fails={what: error}))
    measured = {"utilization", "memory_used_bytes", "energy_millijoules"}

    assert reading.count == 2
    assert {name for name in measured if getattr(reading, name) is None} == {field}


@pytest.mark.parametrize(
    ("what", "field", "value"),
    [
        ("percent", "utilization", float("nan")),
        ("percent", "utilization", -1),
        ("percent", "utilization", 101),
        ("percent", "utilization", 2**32 - 1),
        ("percent", "utilization", None),
        ("used_bytes", "memory_used_bytes", -1),
        ("used_bytes", "memory_used_bytes", float("inf")),
        ("millijoules", "energy_millijoules", -5),
        ("millijoules", "energy_millijoules", True),
    ],
)
def test_a_number_that_cannot_be_is_absent(what, field, value):
    assert getattr(read(Gpu(**{what: value})), field) is None


@pytest.mark.parametrize("count", [-1, 65, None, "2"])
def test_a_count_that_cannot_be_is_unknown(count):
    nvml = FakeNvml(Gpu())
    nvml.nvmlDeviceGetCount = lambda: count  # type: ignore[method-assign]

    assert Gpus(lambda: nvml).read().count is None


def test_names_may_be_bytes_and_carry_no_control_characters():
    """Releases before 11.5 gave bytes."""
    assert read(Gpu(b"GPU-0", b"NVIDIA\x1b L4")).products == ("NVIDIA L4",)


def test_two_gpus_of_one_uuid_are_not_added_up():
    assert read(Gpu("GPU-0"), Gpu("GPU-0")).energy_millijoules is None


def test_closing_gives_the_library_back_once():
    nvml = FakeNvml(Gpu())
    gpus = Gpus(lambda: nvml)
    gpus.read()
    gpus.close()
    gpus.close()

    assert (nvml.opened, nvml.closed) == (1, 1)


# ------------------------------------------------------------------------- energy


def energy(**counters):
    return GpuReading(count=len(counters), energy_millijoules=tuple(sorted(counters.items())))


def test_energy_between_two_readings_is_summed_over_gpus():
    assert joules_between(energy(a=1000, b=500), energy(a=3000, b=1000)) == 2.5


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(GpuReading(), energy(a=1), id="first round"),
        pytest.param(energy(a=1), GpuReading(why="lost"), id="no reading"),
        pytest.param(energy(a=5, b=1), energy(a=4, b=9), id="a counter went back"),
        pytest.param(energy(a=1), energy(a=2, b=9), id="another GPU"),
        pytest.param(energy(a=1, b=1), energy(a=2), id="a GPU less"),
        pytest.param(energy(a=1), energy(a=1), id="none used"),
        pytest.param(energy(), energy(), id="no GPU"),
    ],
)
def test_energy_that_cannot_be_told_is_absent(before, after):
    assert joules_between(before, after) is None


COUNTERS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 10**15))


@given(COUNTERS, COUNTERS)
def test_energy_is_never_negative_nor_zero(before, after):
    joules = joules_between(energy(**before), energy(**after))

    assert joules is None or joules > 0


# ------------------------------------------------------- the fake and the original


def used_functions():
    return [name for name, _ in inspect.getmembers(Nvml, inspect.isfunction) if name[0] == "n"]


@pytest.fixture
def original():
    return pytest.importorskip("pynvml", reason="the package nvidia-ml-py is not installed")


def test_the_fake_has_every_function_that_is_used():
    assert [name for name in used_functions() if not hasattr(FakeNvml, name)] == []
    assert len(used_functions()) == 10


def test_the_original_has_them_too_with_as_many_arguments(original):
    for name in used_functions():
        given = inspect.signature(getattr(FakeNvml, name)).parameters
        taken = inspect.signature(getattr(original, name)).parameters.values()
        needed = [p for p in taken if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]

        assert len(given) - 1 == len(needed) or any(p.kind is p.VAR_POSITIONAL for p in taken)


@pytest.mark.parametrize("name", CODES)
def test_errors_have_the_codes_and_texts_of_the_original(original, name):
    error = original.NVMLError(getattr(original, name))

    assert CODES[name] == error.value
    assert str(NVMLError(CODES[name])) == str(error)
    assert issubclass(type(error), original.NVMLError)


def test_the_original_names_the_fields_that_are_read(original):
    names = {name for name, *_ in original.c_nvmlUtilization_t._fields_}
    memory = {name for name, *_ in original.c_nvmlMemory_t._fields_}

    assert "gpu" in names
    assert "used" in memory


def test_the_original_without_a_driver_is_unknown_and_not_a_machine_without_gpus(
    original, monkeypatch
):
    """The real loader on a machine whose driver library cannot be found."""

    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(original, "CDLL", missing)
    monkeypatch.setattr(original, "nvmlLib", None)

    assert Gpus().read() == GpuReading(why="NVML: NVML Shared Library Not Found")


def test_the_library_is_loaded_only_when_it_is_asked_for(monkeypatch):
    monkeypatch.setitem(import_module("sys").modules, "pynvml", None)

    assert load_nvml() == "the package nvidia-ml-py is not installed (extra gpu)"
