"""NVML without a driver: the functions of pynvml that we use, with its errors.

`tests/unit/node/test_gpu.py` holds the list of what must be as in the real module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CODES = {
    "NVML_ERROR_UNINITIALIZED": 1,
    "NVML_ERROR_INVALID_ARGUMENT": 2,
    "NVML_ERROR_NOT_SUPPORTED": 3,
    "NVML_ERROR_NO_PERMISSION": 4,
    "NVML_ERROR_DRIVER_NOT_LOADED": 9,
    "NVML_ERROR_LIBRARY_NOT_FOUND": 12,
    "NVML_ERROR_GPU_IS_LOST": 15,
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH": 18,
    "NVML_ERROR_UNKNOWN": 999,
}
_TEXTS = {
    1: "Uninitialized",
    2: "Invalid Argument",
    3: "Not Supported",
    4: "Insufficient Permissions",
    9: "Driver Not Loaded",
    12: "NVML Shared Library Not Found",
    15: "GPU is lost",
    18: "RM has detected an NVML/RM version mismatch.",
    999: "Unknown Error",
}


class NVMLError(Exception):
    """As pynvml's: `value` is the code, the text what NVML calls it."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return _TEXTS.get(self.value, f"NVML Error with code {self.value}")


@dataclass
class Rates:
    gpu: Any
    memory: int = 0


@dataclass
class Memory:
    used: Any
    total: int = 80 * 2**30
    free: int = 0


@dataclass
class Gpu:
    """One device; a field that is an int code in `fails` raises that error."""

    uuid: Any = "GPU-0"
    name: Any = "NVIDIA H200"
    percent: Any = 50
    used_bytes: Any = 2**30
    millijoules: Any = 1000
    milliwatts: Any = 100_000
    lost: bool = False
    fails: dict[str, str] = field(default_factory=dict)


class FakeNvml:
    """Stands for the module. `init_error` is raised by nvmlInit."""

    NVMLError = NVMLError

    def __init__(self, *gpus: Gpu, init_error: str = "") -> None:
        self.gpus = list(gpus)
        self.init_error = init_error
        self.opened = 0
        self.closed = 0
        self.count: Any = None

    @property
    def is_open(self) -> bool:
        return self.opened > self.closed

    def nvmlInit(self) -> None:  # noqa: N802 - the library's names, here and below
        if self.init_error:
            raise NVMLError(CODES[self.init_error])
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self._check()
        self.closed += 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        self._check()
        return len(self.gpus) if self.count is None else self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Gpu:  # noqa: N802
        self._check()
        if not 0 <= index < len(self.gpus):
            raise NVMLError(CODES["NVML_ERROR_INVALID_ARGUMENT"])
        if self.gpus[index].lost:
            raise NVMLError(CODES["NVML_ERROR_GPU_IS_LOST"])
        return self.gpus[index]

    def nvmlDeviceGetUUID(self, handle: Gpu) -> Any:  # noqa: N802
        return self._of(handle, "uuid")

    def nvmlDeviceGetName(self, handle: Gpu) -> Any:  # noqa: N802
        return self._of(handle, "name")

    def nvmlDeviceGetUtilizationRates(self, handle: Gpu) -> Rates:  # noqa: N802
        return Rates(self._of(handle, "percent"))

    def nvmlDeviceGetMemoryInfo(self, handle: Gpu) -> Memory:  # noqa: N802
        return Memory(self._of(handle, "used_bytes"))

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Gpu) -> Any:  # noqa: N802
        return self._of(handle, "millijoules")

    def nvmlDeviceGetPowerUsage(self, handle: Gpu) -> Any:  # noqa: N802
        return self._of(handle, "milliwatts")

    def _check(self) -> None:
        if not self.is_open:
            raise NVMLError(CODES["NVML_ERROR_UNINITIALIZED"])

    def _of(self, gpu: Gpu, what: str) -> Any:
        self._check()
        if what in gpu.fails:
            raise NVMLError(CODES[gpu.fails[what]])
        return getattr(gpu, what)
