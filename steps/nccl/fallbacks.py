"""Lines that explain a network which works and is not the one that was meant; none of them ends a run."""

from __future__ import annotations

from argosy.steps.nccl.symptom import Fault, Symptom

FALLBACKS: tuple[Symptom, ...] = (
    # Chosen by whoever set the environment: before anything that follows from it.
    Symptom(
        "ib-disabled",
        r"NCCL_IB_DISABLE set by environment to [1-9]",
        "NCCL_IB_DISABLE set by environment to 1.",
        Fault.NETWORK,
        "the environment turns InfiniBand and RoCE off",
        "Remove NCCL_IB_DISABLE from env, the image, /etc/nccl.conf or ~/.nccl.conf.",
    ),
    Symptom(
        "net-forced",
        r"NCCL_NET set by environment to Socket",
        "NCCL_NET set by environment to Socket",
        Fault.NETWORK,
        "the environment demands sockets",
        "Remove NCCL_NET, or choose the fabric profile tcp.",
    ),
    Symptom(
        "plugin-off",
        r"NCCL_NET_PLUGIN set (by environment )?to none",
        "NCCL_NET_PLUGIN set by environment to none",
        Fault.PLUGIN,
        "the environment keeps every network plugin out, and this fabric needs one",
        "Remove NCCL_NET_PLUGIN = none.",
    ),
    # The device is not there, or cannot be opened (#451, #1925; Azure/aks-rdma-infiniband#30).
    Symptom(
        "no-libibverbs",
        r"Failed to open libibverbs",
        "Failed to open libibverbs.so[.1]",
        Fault.NETWORK,
        "the image has no libibverbs, so NCCL cannot use InfiniBand or RoCE",
        "Install libibverbs1, ibverbs-providers and librdmacm1 in the image (nvidia/cuda images lack them).",
    ),
    Symptom(
        "ib-not-opened",
        r"ibv_open_device failed|NET/IB : Unable to open device",
        "NET/IB : Unable to open device mlx5_0",
        Fault.NETWORK,
        "the pod sees the adapter and may not open it",
        "Ask for the RDMA resource of the cluster's device plugin in the pod; it makes /dev/infiniband usable.",
    ),
    Symptom(
        "no-provider",
        r"NET/OFI .*([Nn]o eligible providers|[Cc]ould not find any optimal provider|Only EFA provider is supported"
        r"|fi_getinfo\(\) call failed)",
        "NET/OFI OFI fi_getinfo() call failed: No data available",
        Fault.PLUGIN,
        "libfabric finds no EFA device in the pod",
        "Ask for vpc.amazonaws.com/efa in the pod, and use a libfabric as new as the plugin wants.",
    ),
    Symptom(
        "no-plugin",
        r"NET/Plugin ?: (Could not find: libnccl-net|No plugin found|Plugin load .*returned \d+)",
        "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
        Fault.PLUGIN,
        "the network plugin of this fabric is not in the image or not on LD_LIBRARY_PATH",
        "Install the plugin (aws-ofi-nccl, gIB, TCPXO) and set NCCL_NET, which fails at once where it is missing.",
    ),
    Symptom(
        "no-ib-device",
        r"NET/IB ?: No device found",
        "NET/IB : No device found.",
        Fault.NETWORK,
        "NCCL found no InfiniBand or RoCE device in the pod",
        "Ask for the RDMA resource in the pod, check libibverbs and memlock, and set NCCL_NET = IB, which fails "
        "at once instead of going on over sockets.",
    ),
    # GPUDirect RDMA (#1537, #1939).
    Symptom(
        "gdr-forbidden",
        r"NCCL_NET_GDR_LEVEL set by environment to (LOC|0\b)",
        "NCCL_NET_GDR_LEVEL set by environment to LOC",
        Fault.GDR,
        "the environment turns GPUDirect RDMA off",
        "Remove NCCL_NET_GDR_LEVEL.",
    ),
    Symptom(
        "gdr-disabled",
        r"(?<!Socket : )GPU Direct RDMA Disabled",
        "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'",
        Fault.GDR,
        "neither nvidia_peermem nor DMA-BUF is there, or the way from GPU to adapter is too long",
        "Load nvidia_peermem (or use the open driver with DMA-BUF) on the node; on virtual machines give NCCL the "
        "topology file of the shape.",
    ),
    # Fewer adapters.
    Symptom(
        "hca-list",
        r"NCCL_IB_HCA set (by environment )?to",
        "NCCL_IB_HCA set to mlx5_0",
        Fault.DEVICES,
        "the environment names the adapters that may be used",
        "Remove NCCL_IB_HCA, or name all adapters of the shape in its exact form (=mlx5_0,mlx5_3,...).",
    ),
    # Within a node.
    Symptom(
        "p2p-off",
        r"NCCL_P2P_DISABLE set by environment to [1-9]|NCCL_P2P_LEVEL set by environment to (LOC|0\b)",
        "NCCL_P2P_DISABLE set by environment to 1.",
        Fault.LOCAL,
        "the environment forbids GPUs to talk directly",
        "Remove NCCL_P2P_DISABLE and NCCL_P2P_LEVEL.",
    ),
    # NVLink SHARP (nccl-tests#228).
    Symptom(
        "nvls-off",
        r"NCCL_NVLS_ENABLE set by environment to 0",
        "NCCL_NVLS_ENABLE set by environment to 0.",
        Fault.NVLS,
        "the environment turns NVLink SHARP off",
        "Remove NCCL_NVLS_ENABLE.",
    ),
    Symptom(
        "algo-without-nvls",
        r"NCCL_ALGO set by environment to (?!.*(?i:nvls))",
        "NCCL_ALGO set by environment to Ring,Tree",
        Fault.NVLS,
        "NCCL_ALGO leaves every algorithm out that uses NVLink SHARP",
        "Remove NCCL_ALGO.",
    ),
    Symptom(
        "no-multicast",
        r"NVLS multicast support is not available",
        "NVLS multicast support is not available on dev 0",
        Fault.NVLS,
        "the GPUs cannot multicast over NVLink",
        "Check that the fabric manager runs on the node and that the pod has all GPUs of it.",
    ),
)
