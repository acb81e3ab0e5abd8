"""What the pod around them changes in what is said of the same variables."""

from __future__ import annotations

import pytest

from argosy.steps.nccl.checks import check_environment
from argosy.steps.nccl.facts import Facts, Span, Value
from argosy.steps.nccl.finding import EnvironmentFinding, Remove, Rename, Set
from argosy.steps.nccl.spelling import distance, nearest

GPU = frozenset({"nvidia.com/gpu"})


def found(rule: str, env: dict[str, Value], facts: Facts) -> list[EnvironmentFinding]:
    return [each for each in check_environment(env, facts) if each.rule == rule]


@pytest.mark.parametrize(
    ("rule", "env", "loud", "quiet"),
    [
        ("NCCL012", {"FI_PROVIDER": "tcp"}, Facts(link="efa"), Facts(link="ib")),
        ("NCCL012", {"FI_EFA_USE_HUGE_PAGE": "0"}, Facts(resources=GPU), Facts(resources=GPU, privileged=True)),
        ("NCCL024", {"NCCL_SOCKET_IFNAME": "eth0"}, Facts(host_network=True), Facts(host_network=True, cloud="oci")),
        ("NCCL025", {"NCCL_SOCKET_IFNAME": "lo"}, Facts(nodes=2), Facts(nodes=1)),
        (
            "NCCL026",
            {"NCCL_SOCKET_IFNAME": "ib0"},
            Facts(host_network=False),
            Facts(host_network=False, annotations=frozenset({"k8s.v1.cni.cncf.io/networks"})),
        ),
        ("NCCL026", {"NCCL_SOCKET_IFNAME": "net"}, Facts(interfaces=frozenset({"eth0"})), Facts(host_network=True)),
        ("NCCL032", {"NCCL_IB_TC": "96"}, Facts(link="ib"), Facts(cloud="coreweave")),
        ("NCCL034", {"NCCL_IB_DISABLE": "1"}, Facts(resources=GPU | {"rdma/hca_a"}), Facts(resources=GPU)),
        ("NCCL036", {"NCCL_NET": "IB"}, Facts(resources=GPU), Facts(resources=GPU | {"claim/nics"})),
        ("NCCL053", {"NCCL_IB_HCA": "=mlx5_0"}, Facts(gpus_per_pod=8, resources=GPU), Facts(resources=GPU)),
        (
            "NCCL053",
            {"NCCL_IB_HCA": "=mlx5_0"},
            Facts(gpus_per_pod=8, resources=GPU),
            Facts(gpus_per_pod=8, resources=GPU, privileged=True),
        ),
        ("NCCL036", {"NCCL_NET": "IB"}, Facts(resources=GPU), Facts(resources=GPU, host_network=True)),
        ("NCCL037", {"NCCL_NET_PLUGIN": "none"}, Facts(link="efa"), Facts(link="ib")),
        ("NCCL043", {"NCCL_NVLS_ENABLE": "1"}, Facts(gpu="A100"), Facts(gpu="H100")),
        ("NCCL044", {"NCCL_MNNVL_ENABLE": "1"}, Facts(gpu="NVIDIA-A100-SXM4-80GB"), Facts(gpu="GB200")),
        ("NCCL010", {"NCCL_RAS_ENABLE": "0"}, Facts(nccl=Span.exactly("2.20.5")), Facts(nccl=Span.exactly("2.30.7"))),
        ("NCCL010", {"NCCL_SHM_MEMCPY_MODE": "1"}, Facts(nccl=Span.exactly("2.31.2")), Facts()),
        ("NCCL049", {"NCCL_DEBUG": "WARN"}, Facts(backend="gloo"), Facts(backend="nccl")),
        ("NCCL052", {"NCCL_TOPO_FILE": "/t/a.xml"}, Facts(mounts=frozenset({"/d"})), Facts(mounts=frozenset({"/t"}))),
        ("TORCH001", {"NCCL_BLOCKING_WAIT": "0"}, Facts(), Facts(torch=Span.exactly("2.1.2"))),
    ],
)
def test_a_rule_speaks_where_it_applies(rule: str, env: dict[str, Value], loud: Facts, quiet: Facts) -> None:
    assert found(rule, env, loud)
    assert not found(rule, env, quiet)


@pytest.mark.parametrize(
    ("env", "facts", "level"),
    [
        ({"NCCL_SOCKET_IFNAME": "lo"}, Facts(nodes=2), "error"),
        ({"NCCL_NET": "IB", "NCCL_IB_DISABLE": "1"}, Facts(), "error"),
        ({"TORCH_DISTRIBUTED_DEBUG": "verbose"}, Facts(), "error"),
        ({"NCCL_P2P_DISABLE": "1"}, Facts(gpu="NVIDIA-GeForce-RTX-4090"), "note"),
        ({"NCCL_P2P_DISABLE": "1"}, Facts(image="ghcr.io/x/nccl-tests:1"), "note"),
        ({"NCCL_ALGO": "allreduce:tree"}, Facts(), "note"),
        ({"NCCL_ALGO": "allreduce:tree"}, Facts(nccl=Span.exactly("2.31.2")), "warning"),
    ],
)
def test_the_level_follows_the_pod(env: dict[str, Value], facts: Facts, level: str) -> None:
    levels = [each.level for each in check_environment(env, facts)]
    assert max(levels, key=("note", "warning", "error").index) == level


def test_a_value_that_is_not_known_is_not_guessed() -> None:
    names = ("NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "NCCL_IB_GID_INDEX", "NCCL_DEBUG", "NCCL_ALGO", "GLOO_SOCKET_IFNAME")
    said = check_environment(dict.fromkeys(names), Facts(nodes=2, host_network=True))
    assert [each for each in said if each.level != "note" or each.fix] == []


def test_one_variable_has_one_fix() -> None:
    findings = check_environment({"NCCL_ASYNC_ERROR_HANDLING": "0"}, Facts())
    assert {each.rule for each in findings} == {"TORCH001", "TORCH002"}
    assert {each.fix for each in findings} == {Remove("NCCL_ASYNC_ERROR_HANDLING")}


def test_a_level_in_lower_case_is_named_and_not_switched_on() -> None:
    level, path = check_environment({"NCCL_NET_GDR_LEVEL": "sys"}, Facts()), {"NCCL_P2P_LEVEL": "nvl"}
    assert [(each.rule, each.fix) for each in level] == [("NCCL013", None)]
    assert check_environment(path, Facts())[0].fix == Set("NCCL_P2P_LEVEL", "NVL")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("NCCL_SOKET_IFNAME", "NCCL_SOCKET_IFNAME"),
        ("NCCL_IFNAME_SOCKET", "NCCL_SOCKET_IFNAME"),
        ("nccl_debug", "NCCL_DEBUG"),
        ("NCCL_IB_TIMEUOT", "NCCL_IB_TIMEOUT"),
        ("NCCLDEBUG", "NCCL_DEBUG"),
    ],
)
def test_a_misspelt_name_is_found(wrong: str, right: str) -> None:
    assert [each.fix for each in found("NCCL008", {wrong: "WARN"}, Facts())] == [Rename(wrong, right)]


def test_distance_counts_edits_and_stops() -> None:
    assert distance("abcd", "abdc", 2) == 1
    assert distance("abcd", "abcd", 2) == 0
    assert distance("abcd", "wxyz", 2) == 3
    assert nearest("NCCL_QUITE_ANOTHER", frozenset({"NCCL_DEBUG"})) is None
