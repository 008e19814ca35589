"""What the GPUs of this node say through NVML: how busy they are, their memory, their energy.

The only importer of pynvml (package nvidia-ml-py, extra `gpu`). Without library or driver the
answer is unknown with a reason, never "no GPU". Used by node.reporter, once a round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

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


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One look at all GPUs. None is absent, which is not zero; `why` says why all of it is.

    `utilization` is the mean share, 0 to 1; `memory_used_bytes` the sum. Either is absent as
    soon as one GPU does not say it. `energy_millijoules` are counters by UUID, sorted.
    """

    count: int | None = None
    products: tuple[str, ...] = ()
    utilization: float | None = None
    memory_used_bytes: int | None = None
    energy_millijoules: tuple[tuple[str, int], ...] | None = None
    why: str = ""


class Gpus:
    """Reads them again and again; `load` gives the library or the reason why there is none.

    The library is opened at the first reading, and anew after a reading that failed: a driver
    may come later, or be reloaded.
    """

    def __init__(self, load: Callable[[], Nvml | str] | None = None) -> None:
        self._load = load or load_nvml
        self._nvml: Nvml | None = None

    def read(self) -> GpuReading:
        """One look; never raises."""
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
            return _read(nvml)
        except (nvml.NVMLError, OSError, AttributeError) as error:
            self.close()
            return GpuReading(why=f"NVML: {error}"[:200])

    def close(self) -> None:
        """Give the library back; the next reading opens it anew."""
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


def _read(nvml: Nvml) -> GpuReading:
    """What holds for the whole machine fails as a whole: a lost GPU makes all of it unknown."""
    count = nvml.nvmlDeviceGetCount()
    if not _is_amount(count, MAX_GPUS):
        return GpuReading(why=f"NVML: {count!r} GPUs"[:200])
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    uuids = [_text(nvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    rates = [_asked(nvml, nvml.nvmlDeviceGetUtilizationRates, handle) for handle in handles]
    memory = [_asked(nvml, nvml.nvmlDeviceGetMemoryInfo, handle) for handle in handles]
    energy = [_asked(nvml, nvml.nvmlDeviceGetTotalEnergyConsumption, handle) for handle in handles]
    busy = [rate.gpu / 100 for rate in rates if rate and _is_amount(rate.gpu, 100)]
    used = [amount.used for amount in memory if amount and _is_amount(amount.used)]
    spent = [(uuid, mj) for uuid, mj in zip(uuids, energy, strict=True) if _is_amount(mj)]
    whole = count > 0 and len(set(uuids)) == count
    return GpuReading(
        count=count,
        products=tuple(sorted({_text(nvml.nvmlDeviceGetName(handle)) for handle in handles})),
        utilization=math.fsum(busy) / count if whole and len(busy) == count else None,
        memory_used_bytes=sum(used) if whole and len(used) == count else None,
        energy_millijoules=tuple(sorted(spent)) if whole and len(spent) == count else None,
    )


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
