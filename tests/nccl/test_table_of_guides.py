"""Every row of the table of guides' values (research note on NCCL, 1a) and of names to reject or rename (1b)."""

from __future__ import annotations

import pytest

from argosy.steps.nccl.checks import check_environment
from argosy.steps.nccl.facts import Facts, Span
from argosy.steps.nccl.finding import Remove, Rename

NEW = Span.exactly("2.30.7")
IB = Facts(resources=frozenset({"nvidia.com/gpu", "rdma/ib"}), nodes=2, gpus_per_pod=8)
EFA = Facts(resources=frozenset({"nvidia.com/gpu", "vpc.amazonaws.com/efa"}), nodes=2, gpus_per_pod=8)
HOPPER = Facts(gpu="H100", nodes=2, gpus_per_pod=8, nccl=NEW)

# variable, value, what is known, the rule and its level
VALUES = [
    ("NCCL_DEBUG", "INFO", Facts(), "NCCL020", "note"),
    ("NCCL_DEBUG_SUBSYS", "ALL", Facts(), "NCCL021", "warning"),
    ("NCCL_IB_DISABLE", "0", Facts(), "NCCL033", "note"),
    ("NCCL_NET_GDR_LEVEL", "SYS", Facts(), "NCCL030", "warning"),
    ("NCCL_IB_QPS_PER_CONNECTION", "4", IB, "NCCL029", "warning"),
    ("NCCL_SOCKET_IFNAME", "eth0", Facts(host_network=True), "NCCL024", "warning"),
    ("NCCL_IB_HCA", "mlx5", Facts(privileged=True), "NCCL027", "warning"),
    ("NCCL_IB_HCA", "mlx5", Facts(), "NCCL027", "note"),
    ("NCCL_IB_GID_INDEX", "3", IB, "NCCL028", "warning"),
    ("NCCL_IB_GID_INDEX", "3", Facts(nccl=NEW), "NCCL028", "warning"),
    ("NCCL_BUFFSIZE", "8388608", Facts(), "NCCL038", "warning"),
    ("NCCL_BUFFSIZE", "8388608", EFA, "NCCL038", "warning"),
    ("NCCL_ALGO", "Ring,Tree", HOPPER, "NCCL040", "warning"),
    ("NCCL_MIN_NRINGS", "4", Facts(), "NCCL004", "warning"),
    ("NCCL_TREE_THRESHOLD", "0", Facts(), "NCCL002", "error"),
    ("NCCL_TIMEOUT", "3600", Facts(), "NCCL001", "error"),
]

NAMES = [
    ("NCCL_TIMEOUT", "3600", Facts(), "NCCL001", "error"),
    ("NCCL_TREE_THRESHOLD", "0", Facts(), "NCCL002", "error"),
    ("NCCL_LL_THRESHOLD", "16384", Facts(), "NCCL002", "error"),
    ("NCCL_SINGLE_RING_THRESHOLD", "262144", Facts(), "NCCL002", "error"),
    ("NCCL_IB_CUDA_SUPPORT", "1", Facts(), "NCCL003", "error"),
    ("NCCL_IB_GDR_LEVEL", "PIX", Facts(), "NCCL003", "error"),
    ("NCCL_MIN_CHANNELS", "8", Facts(), "NCCL003", "error"),
    ("NCCL_MAX_CHANNELS", "8", Facts(), "NCCL003", "error"),
    ("NCCL_MIN_NRINGS", "4", Facts(), "NCCL004", "warning"),
    ("NCCL_MAX_NRINGS", "4", Facts(), "NCCL004", "warning"),
    ("NCCL_MIN_NCHANNELS", "32", Facts(), "NCCL004", "warning"),
    ("NCCL_MAX_NCHANNELS", "8", Facts(), "NCCL004", "warning"),
    ("NCCL_CHECKS_DISABLE", "1", Facts(), "NCCL002", "error"),
    ("NCCL_LAUNCH_MODE", "GROUP", Facts(), "NCCL004", "warning"),
    ("NCCL_CHECK_POINTERS", "1", Facts(), "NCCL004", "warning"),
    ("NCCL_BLOCKING_WAIT", "1", Facts(), "TORCH001", "warning"),
    ("NCCL_ASYNC_ERROR_HANDLING", "1", Facts(), "TORCH001", "warning"),
    ("NCCL_DESYNC_DEBUG", "1", Facts(), "TORCH001", "warning"),
    ("NCCL_FASTRAK_IFNAME", "eth1", EFA, "NCCL006", "error"),
    ("NCCL_GPUDIRECTTCPX_CTRL_DEV", "eth0", EFA, "NCCL006", "error"),
    ("NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE", "/f", EFA, "NCCL006", "error"),
    ("NCCL_TUNER_CONFIG_PATH", "/f", EFA, "NCCL006", "error"),
    ("NCCL_DYNAMIC_CHUNK_SIZE", "524288", Facts(), "NCCL006", "warning"),
    ("NCCL_IB_NET_LATENCY", "50", Facts(), "NCCL007", "warning"),
    ("NCCL_SHM_USE_CUDA_MEMCPY", "1", Facts(), "NCCL002", "error"),
    ("NCCL_WORK_FIFO_DEPTH", "65536", Facts(), "NCCL002", "error"),
    ("FI_EFA_FORK_SAFE", "1", EFA, "NCCL011", "note"),
    ("FI_PROVIDER", "efa", EFA, "NCCL011", "note"),
    ("FI_EFA_USE_DEVICE_RDMA", "1", EFA, "NCCL011", "note"),
    ("RDMAV_FORK_SAFE", "1", EFA, "NCCL011", "warning"),
]


@pytest.mark.parametrize(("name", "value", "facts", "rule", "level"), [*VALUES, *NAMES])
def test_every_row_of_the_table_is_found(name: str, value: str, facts: Facts, rule: str, level: str) -> None:
    found = {(each.rule, each.level) for each in check_environment({name: value}, facts) if name in each.variables}
    assert (rule, level) in found


@pytest.mark.parametrize(("name", "rule"), [(name, rule) for name, _, _, rule, _ in NAMES if name.startswith("NCCL")])
def test_a_name_is_found_where_its_value_is_not_known(name: str, rule: str) -> None:
    facts = EFA if rule == "NCCL006" else Facts()
    by_value = name == "NCCL_LAUNCH_MODE"
    assert (rule in {each.rule for each in check_environment({name: None}, facts)}) is not by_value


def test_sockets_beyond_the_limit() -> None:
    env = {"NCCL_SOCKET_NTHREADS": "16", "NCCL_NSOCKS_PERTHREAD": "8"}
    assert [(each.rule, each.level) for each in check_environment(env, Facts())] == [("NCCL017", "error")]
    assert not check_environment({"NCCL_SOCKET_NTHREADS": "4", "NCCL_NSOCKS_PERTHREAD": "4"}, Facts())


@pytest.mark.parametrize(
    ("env", "facts"),
    [
        ({"NCCL_NET_GDR_LEVEL": "SYS"}, Facts(cloud="azure")),
        ({"NCCL_IB_QPS_PER_CONNECTION": "4"}, Facts(link="roce")),
        ({"NCCL_SOCKET_IFNAME": "eth0"}, Facts(host_network=False)),
        ({"NCCL_IB_HCA": "=mlx5_0,mlx5_3"}, Facts(privileged=True)),
        ({"NCCL_IB_GID_INDEX": "3", "NCCL_IB_TC": "41"}, Facts(cloud="oci", nccl=NEW)),
        ({"NCCL_IB_GID_INDEX": "3"}, Facts(nccl=Span.exactly("2.20.5"), link="roce")),
        ({"NCCL_BUFFSIZE": "8388608"}, Facts(cloud="gcp")),
        ({"NCCL_ALGO": "^nvls"}, Facts(cloud="gcp")),
        ({"NCCL_MIN_NCHANNELS": "4"}, Facts(cloud="gcp")),
        ({"NCCL_FASTRAK_IFNAME": "eth1,eth2"}, Facts(annotations=frozenset({"networking.gke.io/interfaces"}))),
        ({"NCCL_IB_NET_LATENCY": "50", "NCCL_NET_PLUGIN": "spcx"}, Facts()),
        ({"NCCL_SHM_USE_CUDA_MEMCPY": "1"}, Facts(nccl=Span.exactly("2.20.5"), diagnosis=True, cloud="gcp")),
        ({"NCCL_DEBUG": "WARN"}, Facts()),
        ({"NCCL_LAUNCH_MODE": None}, Facts()),
    ],
)
def test_the_same_names_are_right_where_they_belong(env: dict[str, str | None], facts: Facts) -> None:
    assert [each for each in check_environment(env, facts) if each.level != "note"] == []


def test_the_fix_of_a_wrong_name() -> None:
    fixes = {name: check_environment({name: "8"}, Facts())[0].fix for name in ("NCCL_TIMEOUT", "NCCL_MAX_CHANNELS")}
    assert fixes == {
        "NCCL_TIMEOUT": Remove("NCCL_TIMEOUT"),
        "NCCL_MAX_CHANNELS": Rename("NCCL_MAX_CHANNELS", "NCCL_MAX_CTAS"),
    }


def test_a_right_name_beside_the_wrong_one_is_not_overwritten() -> None:
    env = {"NCCL_IB_GDR_LEVEL": "PIX", "NCCL_NET_GDR_LEVEL": "PXB"}
    found = [each for each in check_environment(env, Facts()) if each.rule == "NCCL003"]
    assert [each.fix for each in found] == [Remove("NCCL_IB_GDR_LEVEL")]
