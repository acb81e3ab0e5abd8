"""What each vendor's published manifest says, read apart from the profiles; the sources stand beside the facts."""

from __future__ import annotations

import json
import math

import pytest
import yaml

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.transport import ExpectedTransport
from argosy.workflows.spec.run import TrainingRun
from tests.fabric.cases import case, env_of, main, run_on, template

# awsome-distributed-training, micro-benchmarks/nccl-tests/kubernetes/nccl-tests*.yaml and the sizes of the families.
EFA = {"p4d": 4, "p4de": 4, "p5": 32, "p5e": 32, "p5en": 16, "p6-b200": 8, "p6e-gb200": 4}
# oci-hpc-oke, docs/using-rdma-network-interfaces-in-manifests.md: virtual functions of a node.
OCI_VFS = {"BM.GPU4.8": 16, "BM.GPU.A100-v2.8": 16, "BM.GPU.B4.8": 16, "BM.GPU.H100.8": 16, "BM.GPU.B300.8": 16}
OCI_VFS |= {"BM.GPU.H200.8": 8, "BM.GPU.B200.8": 8}
GKE = "networking.gke.io/interfaces"


def expected(run: TrainingRun) -> ExpectedTransport:
    """What the pod is told, out of its own arguments."""
    return ExpectedTransport.from_json(LaunchArgs.from_argv(main(run)["args"]).expected_transport)


def efa(shape: str) -> TrainingRun:
    return run_on({"fabric": "aws-efa", "fabric_parameters": {"shape": shape}}, gpus=4 if "gb200" in shape else 8)


def oci(shape: str, mode: str) -> TrainingRun:
    return run_on({"fabric": "oci-roce", "fabric_parameters": {"shape": shape, "mode": mode}})


@pytest.mark.parametrize(("shape", "count"), EFA.items())
def test_efa_devices_and_huge_pages(shape: str, count: int) -> None:
    resources = main(efa(shape))["resources"]
    for side in ("requests", "limits"):
        assert resources[side]["vpc.amazonaws.com/efa"] == str(count)
        # nccl-tests.yaml asks for them; nccl-tests-gb200.yaml does not.
        assert resources[side].get("hugepages-2Mi") == (None if shape == "p6e-gb200" else "5120Mi")


def test_efa_leaves_the_tuning_to_its_plugin() -> None:
    # efa-cheatsheet.md: of the many variables of older guides none is needed from libfabric 1.18 on.
    assert set(env_of(efa("p5"))) == {"PYTHONUNBUFFERED", "NCCL_NET"}
    pod = template(efa("p5"))["spec"]
    assert "hostNetwork" not in pod
    assert "initContainers" not in pod


def test_the_older_plugin_has_another_name() -> None:
    old = run_on({"fabric": "aws-efa", "fabric_parameters": {"shape": "p4d", "plugin": "old"}})
    assert (env_of(old)["NCCL_NET"], expected(old).network) == ("AWS Libfabric", "AWS Libfabric")


@pytest.mark.parametrize(
    ("name", "first", "networks"),
    [
        # container-engine-accelerators, gpudirect-tcpx/nccl-test-unprivileged-without-hostnetwork.yaml
        ("gcp-a3-high", 1, [f"vpc{number}" for number in range(1, 5)]),
        # gpudirect-tcpxo/nccl-test-latest.yaml
        ("gcp-a3-mega", 1, [f"vpc{number}" for number in range(1, 9)]),
        # gpudirect-rdma/nccl-test-a4.yaml
        ("gcp-a3u-a4", 2, [f"rdma-{number}" for number in range(8)]),
    ],
)
def test_gke_interfaces(name: str, first: int, networks: list[str]) -> None:
    annotations = template(case(name))["metadata"]["annotations"]
    wanted = [{"interfaceName": "eth0", "network": "default"}]
    wanted += [{"interfaceName": f"eth{first + place}", "network": name} for place, name in enumerate(networks)]
    assert json.loads(annotations[GKE]) == wanted
    assert annotations["networking.gke.io/default-interface"] == "eth0"
    assert "hostNetwork" not in template(case(name))["spec"]


@pytest.mark.parametrize(
    ("name", "daemon", "capabilities", "further"),
    [
        ("gcp-a3-high", "tcpx-daemon", ["NET_ADMIN"], []),
        ("gcp-a3-mega", "tcpxo-daemon", ["NET_ADMIN", "NET_BIND_SERVICE"], ["dmabuf_import_helper"]),
    ],
)
def test_gke_daemons(name: str, daemon: str, capabilities: list[str], further: list[str]) -> None:
    made = template(case(name))
    (sidecar,) = made["spec"]["initContainers"]
    assert sidecar["name"] == daemon
    # gpudirect-tcpxo/best-practice.md: as a plain container it would keep the Job from ending.
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["securityContext"]["capabilities"]["add"] == capabilities
    given = yaml.safe_load(made["metadata"]["annotations"][f"devices.gke.io/container.{daemon}"])
    devices = [*(f"nvidia{number}" for number in range(8)), "nvidiactl", "nvidia-uvm", *further]
    assert given == [{"path": f"/dev/{device}"} for device in devices]
    volumes = {volume["name"] for volume in made["spec"]["volumes"]}
    assert {mount["name"] for mount in sidecar["volumeMounts"]} <= volumes


def test_tcpxo_as_of_its_release_of_january_2026() -> None:
    # nccl-plugin-gpudirect-tcpxo, tcpxo_scripts/nccl-env-profile.sh; gpudirect-tcpxo/README.md: the checker wants the
    # first, and calls NCCL_ALGO and NCCL_NVLS_ENABLE unexpected since August 2025.
    env = env_of(case("gcp-a3-mega"))
    assert env["NCCL_NVLSTREE_MAX_CHUNKSIZE"] == "131072"
    assert (env["NCCL_BUFFSIZE"], env["NCCL_PROTO"]) == ("8388608", "Simple,LL128")
    assert not {"NCCL_ALGO", "NCCL_NVLS_ENABLE", "NCCL_DYNAMIC_CHUNK_SIZE"} & set(env)
    assert len([name for name in env if name.startswith("NCCL_FASTRAK_")]) == 9
    sidecar = template(case("gcp-a3-mega"))["spec"]["initContainers"][0]
    assert sidecar["image"].endswith("/tcpgpudmarxd-dev:v1.0.21")
    # The entry is not executable in the image, and its first line asks for bash.
    assert sidecar["command"][:2] == ["/bin/bash", "/fts/entrypoint_rxdm_container.sh"]


def test_gib_has_a_tuner_file_for_each_machine() -> None:
    path = "NCCL_TUNER_CONFIG_PATH"
    assert env_of(case("gcp-a3u-a4"))[path] == "/usr/local/gib/configs/tuner_config_a4.txtpb"
    assert env_of(case("gcp-a3u-a4-dra"))[path] == "/usr/local/gib/configs/tuner_config_a3u.txtpb"


def test_gib_by_dynamic_resource_allocation() -> None:
    # gpudirect-rdma/nccl-test-managed-rdma.yaml: a claim, and no networks.
    made = template(case("gcp-a3u-a4-dra"))
    assert set(made["metadata"]["annotations"]) == {"argosy.dev/fabric"}
    assert made["spec"]["resourceClaims"] == [{"name": "rdma", "resourceClaimTemplateName": "all-mrdma"}]
    assert made["spec"]["containers"][0]["resources"]["claims"] == [{"name": "rdma"}]
    assert "NCCL_SOCKET_IFNAME" not in env_of(case("gcp-a3u-a4-dra"))


@pytest.mark.parametrize(("shape", "count"), OCI_VFS.items())
def test_oci_virtual_functions(shape: str, count: int) -> None:
    made = template(oci(shape, "vf"))
    container = made["spec"]["containers"][0]
    assert container["resources"]["limits"]["nvidia.com/rdma-vf"] == str(count)
    # The attachment lies in the namespace default, and a run seldom does.
    assert made["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].split(",") == ["default/rdma-vf"] * count
    assert env_of(oci(shape, "vf"))["NCCL_IB_HCA"] == "mlx5"
    assert "hostNetwork" not in made["spec"]


@pytest.mark.parametrize(("shape", "count"), OCI_VFS.items())
def test_oci_on_the_host(shape: str, count: int) -> None:
    made = template(oci(shape, "host"))
    assert (made["spec"]["hostNetwork"], made["spec"]["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    env = env_of(oci(shape, "host"))
    # docs/recommended-nccl-rccl-parameters-by-shape.md
    assert env["NCCL_IB_HCA"].startswith("=mlx5_")
    assert len(set(env["NCCL_IB_HCA"].lstrip("=").split(","))) == count
    assert (env["NCCL_IB_TC"], env["NCCL_IB_GID_INDEX"], env["NCCL_IB_TIMEOUT"]) == ("41", "3", "22")
    a100 = shape in ("BM.GPU4.8", "BM.GPU.A100-v2.8", "BM.GPU.B4.8")
    assert env.get("NCCL_IB_QPS_PER_CONNECTION") == ("4" if a100 else None)
    assert env.get("NCCL_CUMEM_ENABLE") == (None if a100 else "0")
    container = made["spec"]["containers"][0]
    assert container["securityContext"]["privileged"] is True
    assert "allowPrivilegeEscalation" not in container["securityContext"]
    sizes = [each["emptyDir"]["sizeLimit"] for each in made["spec"]["volumes"] if each["name"] == "shm"]
    assert sizes == ["32Gi"]


def test_azure() -> None:
    # aks-rdma-infiniband: each adapter is one of rdma/ib; one of rdma/shared_ib is a place with all of them.
    assert main(case("azure-nd"))["resources"]["limits"]["rdma/ib"] == "8"
    assert main(case("azure-nd-shared"))["resources"]["limits"]["rdma/shared_ib"] == "1"
    # azhpc-images, customizations/ndv5.sh
    env = env_of(case("azure-nd"))
    assert env["NCCL_TOPO_FILE"] == "/opt/microsoft/ndv5/topo.xml"
    assert env["NCCL_IB_PCI_RELAXED_ORDERING"] == "1"
    assert "NCCL_NET_GDR_LEVEL" not in env
    topology = {"name": "topology", "mountPath": "/opt/microsoft/ndv5", "readOnly": True}
    assert topology in main(case("azure-nd"))["volumeMounts"]
    # tests/scenarios/k8s/values.yaml, where no topology file is
    assert env_of(case("azure-nd-shared"))["NCCL_NET_GDR_LEVEL"] == "SYS"


def test_coreweave() -> None:
    # nccl-tests, jobset/nccl-test-distributed-h100-64-jobset.yaml
    env = env_of(case("ib-coreweave"))
    assert (env["NCCL_IB_HCA"], env["NCCL_SOCKET_IFNAME"], env["NCCL_NET_PLUGIN"]) == ("ibp", "eth0", "none")
    assert main(case("ib-coreweave"))["resources"]["limits"]["rdma/ib"] == "1"


def test_nvl72() -> None:
    # nccl-tests, mpi-operator/nccl-test-distributed-gb200-nvl72-mpijob-dra.yaml
    pod = template(case("gb200-mnnvl"))["spec"]
    claim = {"name": "compute-domain-channel", "resourceClaimTemplateName": "train-channel"}
    assert pod["resourceClaims"] == [claim]
    (term,) = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "nvidia.com/gpu.clique"
    assert term["matchLabelKeys"] == ["argosy.dev/gang"]  # what a lost node keeps of a gang before does not draw it
    assert term["labelSelector"]["matchLabels"].items() <= template(case("gb200-mnnvl"))["metadata"]["labels"].items()
    assert env_of(case("gb200-mnnvl"))["NCCL_MNNVL_ENABLE"] == "1"
    assert "NVIDIA_IMEX_CHANNELS" not in env_of(case("gb200-mnnvl"))
    assert env_of(case("gb200-mnnvl-host"))["NVIDIA_IMEX_CHANNELS"] == "0"
    assert "resourceClaims" not in template(case("gb200-mnnvl-host"))["spec"]


@pytest.mark.parametrize(
    ("name", "network", "gdr", "nics", "gbps"),
    [
        ("tcp", "Socket", False, 0, 0),
        ("ib-sriov", "IB", True, 8, 400),
        ("ib-shared", "IB", True, 8, 0),
        ("ib-coreweave", "IB", True, 8, 400),
        ("azure-nd", "IB", True, 8, 400),
        ("azure-nd-shared", "IB", True, 8, 200),
        ("aws-efa", "Libfabric", True, 8, 400),
        ("gcp-a3-high", "GPUDirectTCPX_v7", False, 4, 200),
        ("gcp-a3-mega", "FasTrak", False, 8, 200),
        ("gcp-a3u-a4", "gIB", True, 8, 400),
        ("oci-roce-host", "IB", True, 8, 400),
        ("oci-roce-vf", "IB", True, 0, 0),
        ("gb200-mnnvl", "MNNVL", False, 0, 0),
    ],
)
def test_what_the_pod_is_told_to_expect(name: str, network: str, gdr: bool, nics: int, gbps: int) -> None:
    told = expected(case(name))
    assert (told.network, told.gdr, told.nics, told.nic_gbps) == (network, gdr, nics, gbps)
    assert told.profile == name or name.startswith(told.profile)
    # No more than the adapters carry can be asked of them.
    assert told.busbw_floor_gbs <= (nics * gbps / 8 or math.inf)


def test_what_the_user_changes_is_no_longer_expected() -> None:
    assert expected(case("azure-nd", {"NCCL_NVLS_ENABLE": "0"})).nvls is False
    assert expected(case("azure-nd", {"NCCL_IB_HCA": "=mlx5_0"})).nics == 0


def test_one_node_alone_is_told_to_expect_no_network() -> None:
    told = expected(run_on({"fabric": "aws-efa", "nnodes": 1, "fabric_parameters": {"shape": "p5"}}))
    assert (told.network, told.gdr, told.nics, told.busbw_floor_gbs, told.nvls) == ("", False, 0, 0.0, True)


def test_without_a_fabric_nothing_is_set_and_nothing_is_told() -> None:
    plain = run_on({})
    assert not any(word.startswith("--expected-transport") for word in main(plain)["args"])
    assert set(env_of(plain)) == {"PYTHONUNBUFFERED"}
    assert "annotations" not in template(plain)["metadata"]
    assert template(plain)["metadata"]["labels"] == {"argosy.dev/run": "llm"}
