"""What NVIDIA's driver says of the GPUs, asked through its own library where that is there: no package is needed."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

SECONDS = 3.0
"""A driver whose GPU fell off the bus may not answer at all."""
_LIBRARY = "libnvidia-ml.so.1"
_TEXT = 96
# Of nvml.h; they have not changed since they were introduced.
_TEMPERATURE_GPU = 0
_CLOCKS = {"graphics": 0, "sm": 1, "memory": 2}
_ECC = {"corrected": 0, "uncorrected": 1}
_LIFE = {"volatile": 0, "aggregate": 1}


def gpus(library: str = _LIBRARY, seconds: float = SECONDS) -> list[dict[str, Any]] | str:
    """One record for each GPU; "" without the library, else why there is none."""
    try:
        nvml = ctypes.CDLL(library)
    except OSError:
        return ""
    answer: list[list[dict[str, Any]] | str] = []
    asking = threading.Thread(target=lambda: answer.append(_ask(nvml)), name="nvml", daemon=True)
    asking.start()
    asking.join(seconds)
    return answer[0] if answer else f"the driver did not answer within {seconds:g} s"


def _ask(nvml: ctypes.CDLL) -> list[dict[str, Any]] | str:
    try:
        if code := nvml.nvmlInit_v2():
            return f"nvmlInit: error {code}"
        count = ctypes.c_uint()
        if code := nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return f"nvmlDeviceGetCount: error {code}"
        return [_gpu(nvml, index) for index in range(count.value)]
    except AttributeError as error:
        return str(error)


def _gpu(nvml: ctypes.CDLL, index: int) -> dict[str, Any]:
    device = ctypes.c_void_p()
    told: dict[str, Any] = {"index": index}
    if code := nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device)):
        return {**told, "error": code}  # 15: it has fallen off the bus
    for key, function in (("name", "nvmlDeviceGetName"), ("uuid", "nvmlDeviceGetUUID")):
        text = ctypes.create_string_buffer(_TEXT)
        told[key] = text.value.decode("utf-8", "replace") if _call(nvml, function, device, text, _TEXT) else None
    told["temperature"] = _number(nvml, "nvmlDeviceGetTemperature", device, _TEMPERATURE_GPU)
    told["power_milliwatts"] = _number(nvml, "nvmlDeviceGetPowerUsage", device)
    told["throttle_reasons"] = _number(
        nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", device, kind=ctypes.c_ulonglong
    )
    told["clocks_mhz"] = {name: _number(nvml, "nvmlDeviceGetClockInfo", device, kind) for name, kind in _CLOCKS.items()}
    told["ecc"] = {
        f"{kind}_{life}": _number(nvml, "nvmlDeviceGetTotalEccErrors", device, number, counter, kind=ctypes.c_ulonglong)
        for kind, number in _ECC.items()
        for life, counter in _LIFE.items()
    }
    told["retired_pages_pending"] = _number(nvml, "nvmlDeviceGetRetiredPagesPendingStatus", device)
    rows = [ctypes.c_uint() for _ in range(4)]
    if _call(nvml, "nvmlDeviceGetRemappedRows", device, *map(ctypes.byref, rows)):
        named = ("corrected", "uncorrected", "pending", "failed")
        told["remapped_rows"] = dict(zip(named, (row.value for row in rows), strict=True))
    memory = (ctypes.c_ulonglong * 3)()
    if _call(nvml, "nvmlDeviceGetMemoryInfo", device, memory):
        told["memory_bytes"] = dict(zip(("total", "free", "used"), memory, strict=True))
    return told


def _number(
    nvml: ctypes.CDLL, function: str, device: ctypes.c_void_p, *given: int, kind: Any = ctypes.c_uint
) -> int | None:
    value = kind()
    asked = _call(nvml, function, device, *(ctypes.c_int(each) for each in given), ctypes.byref(value))
    return int(value.value) if asked else None


def _call(nvml: ctypes.CDLL, function: str, *arguments: Any) -> bool:
    """Whether it answered; a driver may be too old for one, and a GPU unable."""
    asked = getattr(nvml, function, None)
    return asked is not None and asked(*arguments) == 0
