"""Names that look like NCCL's and are read by something else: plugins, tests, builds."""

from __future__ import annotations

GOOGLE = (
    "NCCL_FASTRAK_",
    "NCCL_GPUDIRECTTCPX_",
    "NCCL_SHIMNET_",
    "NCCL_TUNER_CONFIG_PATH",
    "NCCL_DYNAMIC_CHUNK_SIZE",
    "NCCL_FASTSOCKET_",
    "NCCL_TELEMETRY_",
)
"""Google's plugins (TCPX, TCPXO, gIB); GoogleCloudPlatform/container-engine-accelerators gpudirect-*."""

SPECTRUM = ("NCCL_IB_NET_LATENCY", "NCCL_SPCX_")
"""NVIDIA's Spectrum-X plugin."""

ELSEWHERE = (
    "NCCL_TESTS_",
    "NCCL_SHARP_",
    "NCCL_IBEXT_DISABLE",
    "NCCL_PLUGIN_P2P",
    "NCCL_UCX_",
    "NCCL_INSPECTOR_",
    "NCCL_EXAMPLE_",
    "NCCL_TUNER_CONFIG_FILE",
    "NCCL_CSV_CONFIG_FILE",
    "NCCL_VERSION",
    "NCCL_HOME",
    "NCCL_ROOT",
    "NCCL_DIR",
    "NCCL_PATH",
    "NCCL_PREFIX",
    "NCCL_INCLUDE_DIR",
    "NCCL_LIB",
)
"""nccl-tests, the SHARP and UCX plugins, NVIDIA's example plugins, builds and base images."""


def known_elsewhere(name: str) -> bool:
    """Something other than NCCL reads ``name``."""
    return name.startswith(GOOGLE + SPECTRUM + ELSEWHERE)
