"""What the user sets wins where it merely differs, and is refused where the fabric cannot work with it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from argosy.steps.contract.errors import InputError
from argosy.workflows.spec.run import warnings
from tests.fabric.cases import GANGS, case, env_of, main, run_on, template

REFUSED = [
    ("ib-sriov", {"NCCL_NET": "Socket"}, "must be 'IB' with fabric ib-sriov"),
    ("ib-sriov", {"NCCL_IB_DISABLE": "1"}, "turns the very transport off"),
    ("ib-shared", {"NCCL_IB_DISABLE": "1"}, "must not be set so with fabric ib-shared"),
    ("ib-coreweave", {"NCCL_IB_DISABLE": "1"}, "turns the very transport off"),
    ("azure-nd", {"NCCL_IB_DISABLE": "1"}, "turns the very transport off"),
    ("azure-nd", {"NCCL_NET_GDR_LEVEL": "LOC"}, "turns GPUDirect RDMA off"),
    ("oci-roce-host", {"NCCL_IB_DISABLE": "1"}, "turns the very transport off"),
    ("oci-roce-vf", {"NCCL_IB_TC": "0"}, "must be '41'"),
    ("gcp-a3u-a4", {"NCCL_IB_DISABLE": "1"}, "gIB reads it too"),
    ("gcp-a3u-a4", {"NCCL_NET_PLUGIN": "none"}, "gIB is a plugin"),
    ("gcp-a3u-a4", {"NCCL_NET": "IB"}, "must be 'gIB'"),
    ("gcp-a3-mega", {"NCCL_ALGO": "Ring,Tree"}, "the tuner chooses"),
    ("gcp-a3-mega", {"NCCL_BUFFSIZE": "4194304"}, "must be '8388608'"),
    ("gcp-a3-mega", {"LD_LIBRARY_PATH": "/opt/mine"}, "must hold '/usr/local/nvidia/lib64'"),
    ("gcp-a3-high", {"NCCL_ALGO": "Tree"}, "must be 'Ring'"),
    ("aws-efa", {"NCCL_BUFFSIZE": "8388608"}, "never overrides a value of the user's"),
    ("aws-efa", {"NCCL_NET": "Socket"}, "must be 'Libfabric'"),
    ("aws-efa", {"NCCL_NET_PLUGIN": "none"}, "reached through the plugin alone"),
    ("aws-efa", {"FI_PROVIDER": "tcp"}, "leave EFA aside"),
    ("gb200-mnnvl", {"NCCL_MNNVL_ENABLE": "0"}, "must be '1'"),
    ("gb200-mnnvl", {"NCCL_P2P_DISABLE": "1"}, "peer-to-peer access"),
    ("tcp", {"NCCL_NET": "IB"}, "must be 'Socket'"),
]
HARMLESS = [
    ("ib-sriov", {"NCCL_NET": "IB", "NCCL_IB_DISABLE": "0", "NCCL_IB_TIMEOUT": "22"}),
    ("ib-sriov", {"NCCL_SOCKET_IFNAME": "eth1", "NCCL_IB_HCA": "=mlx5_0", "NCCL_DEBUG": "WARN"}),
    ("azure-nd", {"NCCL_NET_GDR_LEVEL": "PHB", "NCCL_IB_PCI_RELAXED_ORDERING": "2"}),
    ("aws-efa", {"FI_EFA_USE_HUGE_PAGE": "0", "FI_PROVIDER": "efa", "NCCL_SOCKET_IFNAME": "^docker,lo,veth"}),
    ("gcp-a3-mega", {"LD_LIBRARY_PATH": "/opt/nccl:/usr/local/nvidia/lib64", "NCCL_DEBUG": "INFO"}),
    ("oci-roce-host", {"NCCL_IB_GID_INDEX": "1", "NCCL_SOCKET_IFNAME": "eth0"}),
    ("tcp", {"NCCL_IB_DISABLE": "1", "NCCL_SOCKET_NTHREADS": "8"}),
    ("single-node", {"NCCL_SOCKET_IFNAME": "eth0"}),
]


@pytest.mark.parametrize(("name", "env", "reason"), REFUSED)
def test_a_contradiction_is_refused_with_the_reason_and_its_source(name: str, env: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError) as refused:
        case(name, env)
    ((variable, value),) = env.items()
    said = str(refused.value)
    assert said.startswith(f"env.{variable} = {value!r}: ")
    assert reason in said
    assert re.search(r"\(https://\S+\); remove it, or choose another fabric", said)
    assert "\n" not in said


@pytest.mark.parametrize(("name", "env"), HARMLESS)
def test_a_difference_is_the_users_to_make(name: str, env: dict[str, str]) -> None:
    made = env_of(case(name, env))
    assert env.items() <= made.items()


@pytest.mark.parametrize("name", ["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"])
def test_the_interface_of_a_pod_in_the_network_of_its_node(name: str) -> None:
    # A shape whose profile names no interface itself.
    gang: dict[str, Any] = {"fabric": "oci-roce", "fabric_parameters": {"shape": "BM.GPU4.8", "mode": "host"}}
    with pytest.raises(InputError, match=rf"^env\.{name} = '=eth0': names the interface of a pod's own network"):
        run_on(gang, {name: "=eth0"})
    assert env_of(run_on(gang, {name: "=ens300np0"}))[name] == "=ens300np0"
    gang["fabric_parameters"]["mode"] = "vf"
    assert env_of(run_on(gang, {name: "=eth0"}))[name] == "=eth0"


def test_a_pod_in_its_nodes_network_cannot_meet_on_the_pods_interface() -> None:
    gang: dict[str, Any] = {"fabric": "ib-coreweave", "pod": {"host_network": True}}
    with pytest.raises(InputError, match=r"^env\.NCCL_SOCKET_IFNAME = 'eth0': names the interface of a pod's own"):
        run_on(gang)
    assert env_of(run_on(gang, {"NCCL_SOCKET_IFNAME": "=bond0"}))["NCCL_SOCKET_IFNAME"] == "=bond0"


def test_what_the_user_gives_the_pod_stands_beside_the_fabrics() -> None:
    mine = {
        "labels": {"team": "a", "sidecar.istio.io/inject": "true"},
        "annotations": {"networking.gke.io/default-interface": "eth9", "x": "y"},
        "volumes": [{"name": "v", "mount_path": "/mnt/v", "source": {"emptyDir": {}}}],
    }
    made = template(run_on({**GANGS["gcp-a3u-a4"], "pod": mine}))
    assert made["metadata"]["labels"].items() >= mine["labels"].items()
    assert made["metadata"]["annotations"].items() >= mine["annotations"].items()
    assert "networking.gke.io/interfaces" in made["metadata"]["annotations"]
    assert {"gib", "v"} <= {volume["name"] for volume in made["spec"]["volumes"]}


def test_two_affinities_hold_both() -> None:
    term = {"topologyKey": "rack", "labelSelector": {}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    node = {required: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}}
    mine = {"podAffinity": {required: [term]}, "nodeAffinity": node}
    affinity = template(run_on({**GANGS["gb200-mnnvl"], "pod": {"affinity": mine}}, gpus=4))["spec"]["affinity"]
    assert [each["topologyKey"] for each in affinity["podAffinity"][required]] == ["nvidia.com/gpu.clique", "rack"]
    assert affinity["nodeAffinity"] == node


@pytest.mark.parametrize(
    ("volume", "said"),
    [
        ({"name": "gib", "mount_path": "/mnt/v"}, "gang.pod.volumes.name = 'gib': is taken by a volume of fabric"),
        ({"name": "v", "mount_path": "/usr/local/gib"}, "gang.pod.volumes.mount_path = '/usr/local/gib': is taken"),
    ],
)
def test_a_volume_of_the_fabrics_is_not_taken(volume: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        run_on({**GANGS["gcp-a3u-a4"], "pod": {"volumes": [{**volume, "source": {"emptyDir": {}}}]}})
    assert said in str(refused.value)


def test_fewer_of_a_resource_are_the_users_to_ask_for_and_worth_a_word() -> None:
    resources = {"memory": "64Gi", "gpu": 8, "extended": {"vpc.amazonaws.com/efa": 16}}
    run = run_on({**GANGS["aws-efa"], "resources": resources})
    assert main(run)["resources"]["limits"]["vpc.amazonaws.com/efa"] == "16"
    assert any("vpc.amazonaws.com/efa = 16, not its 32" in text for text in warnings(run))


PARAMETERS = [
    ({"fabric": "aws-fea"}, "gang.fabric = 'aws-fea': there is no such profile; did you mean 'aws-efa'?"),
    ({"fabric": "infiniband"}, "there is no such profile; the profiles are aws-efa, azure-nd"),
    ({"fabric": "aws-efa"}, "gang.fabric_parameters.shape = '': is required; write shape = \"p4d\""),
    ({"fabric": "ib-sriov"}, "gang.fabric_parameters.rdma_resource = '': is required"),
    ({"fabric": "ib-sriov", "fabric_parameters": {"rdma_resource": "rdma/ib"}}, "nics = '': is required"),
    ({"fabric": "aws-efa", "fabric_parameters": {"shape": "p3"}}, "is none of its choices; write one of p4d, p4de"),
    ({"fabric": "aws-efa", "fabric_parameters": {"shpe": "p5"}}, "has no such parameter; did you mean 'shape'?"),
    ({"fabric": "aws-efa", "fabric_parameters": {"shape": 5.5}}, "shape = 5.5: must be text or a whole number"),
    ({"fabric_parameters": {"shape": "p5"}}, "gang.fabric_parameters: has no effect without a fabric"),
    ({"fabric": "single-node"}, "gang.fabric = 'single-node': one node's loopback cannot join nnodes = 2"),
    ({"fabric": "./mine.toml"}, "is a file, and only a run that is read from a file finds it"),
    (
        {"fabric": "ib-sriov", "fabric_parameters": {"rdma_resource": "rdma", "nics": 8}},
        "rdma_resource = 'rdma': must be a resource's name, domain/name",
    ),
    (
        {"fabric": "ib-sriov", "fabric_parameters": {"rdma_resource": "rdma/ib", "nics": "eight"}},
        "nics = 'eight': must be a whole number from 1",
    ),
    (
        {"fabric": "gb200-mnnvl", "fabric_parameters": {"imex": "dra"}},
        "gang.fabric_parameters.claim_template = '': is required",
    ),
    (
        {"fabric": "gb200-mnnvl", "fabric_parameters": {"imex": "host", "claim_template": "x"}},
        "claim_template = 'x': has an effect with imex = dra only; remove it",
    ),
    (
        {"fabric": "gcp-a3u-a4", "fabric_parameters": {"shape": "a4", "network_prefix": "rdma-"}, "shm_size": "900Gi"},
        "gang.shm_size = '900Gi': /dev/shm counts towards the pod's memory",
    ),
]


@pytest.mark.parametrize(("gang", "said"), PARAMETERS)
def test_a_wrong_fabric_or_parameter_is_named(gang: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        run_on(gang)
    assert said in str(refused.value)


def test_the_fabrics_shm_must_fit_like_the_users_own() -> None:
    small = {"cpu": "8", "memory": "64Gi", "gpu": 8}
    gang = {"fabric": "gcp-a3u-a4", "fabric_parameters": {"shape": "a4", "network_prefix": "r"}, "resources": small}
    with pytest.raises(InputError, match="shm_size = '250Gi': fabric gcp-a3u-a4 sets it, and /dev/shm counts"):
        run_on(gang)
    assert run_on({**gang, "shm_size": "16Gi"}).gang.shm_size == "16Gi"
