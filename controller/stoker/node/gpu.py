"""What the GPUs of this node say through NVML: how busy they are, their memory, their energy.

The only importer of pynvml (package nvidia-ml-py, extra `gpu`). Without library or driver the
answer is unknown with a reason, never "no GPU". Used by node.reporter, once a round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Protocol

from stoker.node.power import PowerMeter

__all__ = ["GpuReading", "Gpus", "Nvml", "joules_between", "load_nvml"]

MAX_GPUS = 64
"""More than any machine has; beyond it the count is taken for nonsense."""


class Nvml(Protocol):
    """The functions of pynvml that are used. All raise NVMLError."""

    @property
    def NVMLError(self) -> type[Exception]:  # noqa: N802 - the library's name, as those below
        """What all of them raise; its `value` is NVML's code."""
        ...

    def nvmlInit(self) -> None:  # noqa: N802
        """Load the driver's library; LibraryNotFound and DriverNotLoaded where there is none."""
        ...

    def nvmlShutdown(self) -> None:  # noqa: N802
        """Give it back."""
        ...

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        """How many GPUs this process may see."""
        ...

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: N802
        """One of them; GpuIsLost when it fell off the bus."""
        ...

    def nvmlDeviceGetUUID(self, handle: Any) -> str | bytes:  # noqa: N802
        """Its name for good; bytes in old releases."""
        ...

    def nvmlDeviceGetName(self, handle: Any) -> str | bytes:  # noqa: N802
        """Its product."""
        ...

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Any:  # noqa: N802
        """`.gpu` in percent; NotSupported under MIG."""
        ...

    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Any:  # noqa: N802
        """`.used` in bytes."""
        ...

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any) -> int:  # noqa: N802
        """Millijoules since the driver was loaded; NotSupported before Volta."""
        ...

    def nvmlDeviceGetPowerUsage(self, handle: Any) -> int:  # noqa: N802
        """Milliwatts of the whole board now; NotSupported on boards without a sensor."""
        ...


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One look at all GPUs. None is absent, which is not zero; `why` says why all of it is.

    `utilization` is the mean share, 0 to 1; `memory_used_bytes` the sum. Either is absent as
    soon as one GPU does not say it. `energy_millijoules` are counters by UUID, sorted; of a GPU
    without one, what its power came to (node.power).
    """

    count: int | None = None
    products: tuple[str, ...] = ()
    utilization: float | None = None
    memory_used_bytes: int | None = None
    energy_millijoules: tuple[tuple[str, int], ...] | None = None
    why: str = ""
    counted: tuple[tuple[str, int], ...] = ()
    """Counters of those GPUs that have one."""


class Gpus:
    """Reads them again and again; `load` gives the library or the reason why there is none.

    The library is opened at the first reading, and anew after a reading that failed: a driver
    may come later, or be reloaded.
    """

    def __init__(self, load: Callable[[], Nvml | str] | None = None) -> None:
        self._load = load or load_nvml
        self._nvml: Nvml | None = None
        self._meter = PowerMeter()
        self._uncounted: tuple[str, ...] = ()

    @property
    def needs_looks(self) -> bool:
        """Whether some GPU has no counter of energy, so that `look` is to be called often."""
        return bool(self._uncounted)

    def look(self, at_seconds: float) -> None:
        """Read the power of GPUs without a counter, between readings; never raises. `at_seconds`
        is of the clock of `read`.
        """
        nvml = self._nvml
        if nvml is None or not self._uncounted:
            return
        try:
            self._meter.look(_power(nvml, self._uncounted), at_seconds)
        except (nvml.NVMLError, OSError, AttributeError):
            self._meter.forget()

    def read(self, at_seconds: float | None = None) -> GpuReading:
        """One look; never raises. Without an instant power is not added up."""
        nvml = self._nvml
        if nvml is None:
            loaded = self._load()
            if isinstance(loaded, str):
                return GpuReading(why=loaded)
            nvml = loaded
        try:
            if self._nvml is None:
                nvml.nvmlInit()
                self._nvml = nvml
            reading, self._uncounted = _read(nvml)
            if at_seconds is None or not self._uncounted:
                return reading
            self.look(at_seconds)
            return self._with_power(reading)
        except (nvml.NVMLError, OSError, AttributeError) as error:
            self.close()
            return GpuReading(why=f"NVML: {error}"[:200])

    def _with_power(self, reading: GpuReading) -> GpuReading:
        """The reading with the energy of GPUs that do not count it, where all are known."""
        counters = [self._meter.counter(uuid) for uuid in self._uncounted]
        added = [each for each in counters if each is not None]
        known = reading.counted
        if len(added) != len(counters) or len(known) + len(added) != reading.count:
            return reading
        return replace(reading, energy_millijoules=tuple(sorted((*known, *added))))

    def close(self) -> None:
        """Give the library back; the next reading opens it anew."""
        self._meter.forget()
        self._uncounted = ()
        nvml, self._nvml = self._nvml, None
        if nvml is not None:
            try:
                nvml.nvmlShutdown()
            except (nvml.NVMLError, OSError):
                return


def load_nvml() -> Nvml | str:
    """The library, or why it cannot be had."""
    try:
        found: Nvml = import_module("pynvml")
    except ImportError:
        return "the package nvidia-ml-py is not installed (extra gpu)"
    return found


def joules_between(before: GpuReading, after: GpuReading) -> float | None:
    """Joules that all GPUs used between two readings; above 0, else None.

    None when a counter went back (the driver was loaded anew), or the GPUs are others.
    """
    if before.energy_millijoules is None or after.energy_millijoules is None:
        return None
    first, last = dict(before.energy_millijoules), dict(after.energy_millijoules)
    if first.keys() != last.keys() or any(last[uuid] < first[uuid] for uuid in first):
        return None
    used = math.fsum(last[uuid] - first[uuid] for uuid in first) / 1000
    return used if used > 0 else None


def _power(nvml: Nvml, uuids: tuple[str, ...]) -> dict[str, float]:
    """Milliwatts of those of the GPUs that say it."""
    found = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        uuid = _text(nvml.nvmlDeviceGetUUID(handle))
        power = _asked(nvml, nvml.nvmlDeviceGetPowerUsage, handle) if uuid in uuids else None
        if power is not None and _is_amount(power):
            found[uuid] = float(power)
    return found


def _read(nvml: Nvml) -> tuple[GpuReading, tuple[str, ...]]:
    """What holds for the whole machine fails as a whole: a lost GPU makes all of it unknown.

    Beside it the GPUs that do not count their energy.
    """
    count = nvml.nvmlDeviceGetCount()
    if not _is_amount(count, MAX_GPUS):
        return GpuReading(why=f"NVML: {count!r} GPUs"[:200]), ()
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    uuids = [_text(nvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    rates = [_asked(nvml, nvml.nvmlDeviceGetUtilizationRates, handle) for handle in handles]
    memory = [_asked(nvml, nvml.nvmlDeviceGetMemoryInfo, handle) for handle in handles]
    energy = [_asked(nvml, nvml.nvmlDeviceGetTotalEnergyConsumption, handle) for handle in handles]
    busy = [rate.gpu / 100 for rate in rates if rate and _is_amount(rate.gpu, 100)]
    used = [amount.used for amount in memory if amount and _is_amount(amount.used)]
    spent = [(uuid, mj) for uuid, mj in zip(uuids, energy, strict=True) if _is_amount(mj)]
    whole = count > 0 and len(set(uuids)) == count
    silent = [uuid for uuid, mj in zip(uuids, energy, strict=True) if mj is None]
    reading = GpuReading(
        count=count,
        products=tuple(sorted({_text(nvml.nvmlDeviceGetName(handle)) for handle in handles})),
        utilization=math.fsum(busy) / count if whole and len(busy) == count else None,
        memory_used_bytes=sum(used) if whole and len(used) == count else None,
        energy_millijoules=tuple(sorted(spent)) if whole and len(spent) == count else None,
        counted=tuple(sorted(spent)) if whole and len(spent) < count else (),
    )
    return reading, tuple(sorted(silent)) if whole else ()


_NOT_SUPPORTED = 3
"""NVML_ERROR_NOT_SUPPORTED (nvml.h): this GPU has no such counter, and others go on."""
_NO_PERMISSION = 4


def _asked(nvml: Nvml, ask: Callable[[Any], Any], handle: Any) -> Any:
    """The answer; None where this GPU does not have it. Other errors are passed on."""
    try:
        return ask(handle)
    except nvml.NVMLError as error:
        if getattr(error, "value", None) in {_NOT_SUPPORTED, _NO_PERMISSION}:
            return None
        raise


def _is_amount(value: Any, most: float = math.inf) -> bool:
    """A number that can be: neither NaN nor negative nor over `most`."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and 0 <= value <= most


def _text(value: str | bytes) -> str:
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    return "".join(c for c in text if c.isprintable())[:100]
