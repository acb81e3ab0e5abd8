"""What the clouds' own manifests set gives no error, and no warning where the cloud's documents ask for it.

The environments and fields are facts of: aws-samples awsome-distributed-training, GoogleCloudPlatform
container-engine-accelerators and gpu-recipes, Azure aks-rdma-infiniband and azhpc-images, oracle-quickstart
oci-hpc-oke, coreweave nccl-tests, NVIDIA k8s-dra-driver-gpu; read in November 2026.
"""

from __future__ import annotations

import pytest

from argosy.steps.nccl.checks import check_environment
from argosy.steps.nccl.facts import Facts

GKE = frozenset({"networking.gke.io/default-interface", "networking.gke.io/interfaces"})
GPU = "nvidia.com/gpu"
EIGHT = {"gpus_per_pod": 8, "nodes": 2}
OCI = "instance-type=BM.GPU.H100.8"


def words(text: str) -> dict[str, str | None]:
    return dict(word.split("=", 1) for word in text.split())


OCI_H100 = words(
    "NCCL_DEBUG=WARN NCCL_CUMEM_ENABLE=0 NCCL_IB_SPLIT_DATA_ON_QPS=0 NCCL_IB_GID_INDEX=3 NCCL_IB_TC=41 NCCL_IB_SL=0 "
    "NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7,mlx5_8,mlx5_9,mlx5_10,mlx5_12,mlx5_13,mlx5_14 "
    "NCCL_IB_TIMEOUT=22 NCCL_SOCKET_IFNAME=eth0 NCCL_IGNORE_CPU_AFFINITY=1"
)
TCPX = words(
    "NCCL_CROSS_NIC=0 NCCL_ALGO=Ring,Tree NCCL_PROTO=Simple NCCL_SOCKET_IFNAME=eth0 NCCL_NSOCKS_PERTHREAD=4 "
    "NCCL_SOCKET_NTHREADS=1 NCCL_MAX_NCHANNELS=12 NCCL_MIN_NCHANNELS=12 NCCL_DYNAMIC_CHUNK_SIZE=524288 "
    "NCCL_P2P_NET_CHUNKSIZE=524288 NCCL_P2P_PCI_CHUNKSIZE=524288 NCCL_P2P_NVL_CHUNKSIZE=1048576 NCCL_BUFFSIZE=4194304 "
    "NCCL_NET_GDR_LEVEL=PIX NCCL_P2P_PXN_LEVEL=0 NCCL_GPUDIRECTTCPX_CTRL_DEV=eth0 "
    "NCCL_GPUDIRECTTCPX_SOCKET_IFNAME=eth1,eth2,eth3,eth4 NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX=/run/tcpx"
)
TCPXO = words(
    "NCCL_FASTRAK_CTRL_DEV=eth0 NCCL_FASTRAK_IFNAME=eth1,eth2,eth3,eth4,eth5,eth6,eth7,eth8 NCCL_SOCKET_IFNAME=eth0 "
    "NCCL_CROSS_NIC=0 NCCL_PROTO=Simple,LL128 NCCL_MIN_NCHANNELS=4 NCCL_BUFFSIZE=8388608 NCCL_NET_GDR_LEVEL=PIX "
    "NCCL_TUNER_PLUGIN=libnccl-tuner.so NCCL_TUNER_CONFIG_PATH=/usr/local/nvidia/lib64/a3plus_tuner_config_ll128.txt "
    "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE=/usr/local/nvidia/lib64/a3plus_guest_config_ll128.textproto "
    "NCCL_FASTRAK_USE_SNAP=1 NCCL_NVLS_ENABLE=0 NCCL_DYNAMIC_CHUNK_SIZE=524288 NCCL_FASTRAK_NUM_FLOWS=2"
)
GIB = words(
    "NCCL_NET=gIB NCCL_CROSS_NIC=0 NCCL_NET_GDR_LEVEL=PIX NCCL_IB_ADAPTIVE_ROUTING=1 NCCL_IB_QPS_PER_CONNECTION=4 "
    "NCCL_IB_TC=52 NCCL_IB_FIFO_TC=84 NCCL_TUNER_CONFIG_PATH=/usr/local/gib/configs/tuner_config_a3u.txtpb "
    "NCCL_SOCKET_IFNAME=eth0,eth1 LD_LIBRARY_PATH=/usr/local/nvidia/lib64"
)
SPECTRUM = words(
    "NCCL_NET_PLUGIN=spcx NCCL_IB_NET_LATENCY=50 NCCL_IB_ADAPTIVE_ROUTING=1 NCCL_NVLS_NCHANNELS=24 "
    "NCCL_IB_ADDR_FAMILY=AF_INET6 NCCL_IB_ADDR_RANGE=fd02::/16 NCCL_IB_TC=96 NCCL_SOCKET_IFNAME=eth0 NCCL_IB_HCA=ibp"
)
AZURE = words(
    "NCCL_TOPO_FILE=/opt/microsoft/ndv5/topo.xml NCCL_IB_PCI_RELAXED_ORDERING=1 NCCL_IGNORE_CPU_AFFINITY=1 "
    "NCCL_NET_GDR_LEVEL=SYS NCCL_SOCKET_IFNAME=eth0 CUDA_DEVICE_ORDER=PCI_BUS_ID"
)
COREWEAVE = frozenset({"node.coreweave.cloud/type"})

CONTEXTS = {
    "aws-efa": (
        words("NCCL_DEBUG=INFO FI_PROVIDER=efa FI_EFA_USE_HUGE_PAGE=0 NCCL_SOCKET_IFNAME=^docker,lo,veth"),
        Facts(resources=frozenset({GPU, "vpc.amazonaws.com/efa", "hugepages-2Mi"}), gpu="H100", **EIGHT),
    ),
    "aws-efa-libfabric": (
        words("NCCL_NET=Libfabric LD_LIBRARY_PATH=/opt/amazon/efa/lib NCCL_DEBUG=WARN FI_EFA_USE_DEVICE_RDMA=1"),
        Facts(resources=frozenset({GPU, "vpc.amazonaws.com/efa"}), **EIGHT),
    ),
    "gcp-a3-high": (TCPX, Facts(annotations=GKE, resources=frozenset({GPU}), gpu="H100", **EIGHT)),
    "gcp-a3-mega": (TCPXO, Facts(annotations=GKE, resources=frozenset({GPU}), gpu="H100", **EIGHT)),
    "gcp-a3u": (GIB, Facts(annotations=GKE, mounts=frozenset({"/usr/local/gib"}), gpu="H200", **EIGHT)),
    "gcp-a4-dra": (GIB, Facts(labels=frozenset({"cloud.google.com/gke-accelerator=nvidia-b200"}), **EIGHT)),
    "azure-nd": (
        AZURE,
        Facts(resources=frozenset({GPU, "rdma/ib"}), mounts=frozenset({"/opt/microsoft"}), gpu="H100", **EIGHT),
    ),
    "azure-by-node": (
        AZURE,
        Facts(labels=frozenset({"node.kubernetes.io/instance-type=Standard_ND96isr_H100_v5"}), **EIGHT),
    ),
    "oci-host": (OCI_H100, Facts(labels=frozenset({OCI}), host_network=True, privileged=True, gpu="H100", **EIGHT)),
    "oci-vf": (
        {**OCI_H100, "NCCL_IB_HCA": "mlx5"},
        Facts(resources=frozenset({GPU, "nvidia.com/rdma-vf"}), gpu="H100", **EIGHT),
    ),
    "oci-a100": (
        words("NCCL_IB_QPS_PER_CONNECTION=4 NCCL_IB_GID_INDEX=3 NCCL_IB_TC=41 NCCL_IB_SL=0 NCCL_IB_TIMEOUT=22"),
        Facts(image="iad.ocir.io/hpc_limited_availability/nccl-tests:25", host_network=True, gpu="A100", **EIGHT),
    ),
    "coreweave-ib": (
        words("NCCL_SOCKET_IFNAME=eth0 NCCL_IB_HCA=ibp NCCL_COLLNET_ENABLE=0 NCCL_NET_PLUGIN=none"),
        Facts(resources=frozenset({GPU, "rdma/ib"}), labels=COREWEAVE, gpu="H100", **EIGHT),
    ),
    "coreweave-sharp": (
        words("NCCL_SOCKET_IFNAME=eth0 NCCL_IB_HCA=ibp NCCL_ALGO=COLLNETCHAIN NCCL_COLLNET_ENABLE=1"),
        Facts(resources=frozenset({GPU, "rdma/ib"}), labels=COREWEAVE, gpu="H100", diagnosis=True, **EIGHT),
    ),
    "coreweave-spectrum": (
        SPECTRUM,
        Facts(resources=frozenset({GPU, "rdma/ib"}), labels=COREWEAVE, gpu="GB300", gpus_per_pod=4, nodes=18),
    ),
    "gb200-imex": (
        words("NCCL_MNNVL_ENABLE=1 NCCL_CUMEM_ENABLE=1 NCCL_NVLS_ENABLE=1 NCCL_NET_GDR_C2C=1 UCX_TLS=tcp"),
        Facts(gpu="GB200", gpus_per_pod=4, nodes=4),
    ),
    "infiniband-bare-metal": (
        words("NCCL_NET=IB NCCL_IB_HCA==mlx5_0,mlx5_3,mlx5_4,mlx5_5 NCCL_DEBUG=WARN NCCL_IB_TIMEOUT=22"),
        Facts(resources=frozenset({GPU, "rdma/rdma_shared_device_a"}), gpu="H100", **EIGHT),
    ),
    "tcp": (
        words("NCCL_SOCKET_IFNAME==eth0 NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4"),
        Facts(resources=frozenset({GPU}), **EIGHT),
    ),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_vendors_recipe_gives_no_error_and_no_warning(name: str) -> None:
    env, facts = CONTEXTS[name]
    loud = [each for each in check_environment(env, facts) if each.level != "note"]
    assert loud == []


@pytest.mark.parametrize("name", ["gcp-a3-high", "gcp-a3-mega", "gcp-a3u"])
def test_googles_settings_are_errors_in_another_cloud(name: str) -> None:
    found = check_environment(CONTEXTS[name][0], CONTEXTS["aws-efa"][1])
    assert {each.rule for each in found if each.level == "error"} == (
        {"NCCL006"} if name != "gcp-a3u" else set()  # NCCL_NET=gIB says that Google's plugin is meant
    )


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_recipe_without_its_context_has_no_error(name: str) -> None:
    assert [each for each in check_environment(CONTEXTS[name][0], Facts()) if each.level == "error"] == []
