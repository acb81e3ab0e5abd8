"""What is particular to a kind, and what is refused with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.steps.contract.errors import InputError
from argosy.workflows.imports.convert import convert
from argosy.workflows.manifests.reading import read_text
from argosy.workflows.spec.run import TrainingRun
from tests.imports.account import Account
from tests.imports.cases import FOLDER

Imported = Callable[..., tuple[dict[str, Any], Account]]
Job = Callable[..., dict[str, Any]]
TRAIN = {"command": ["torchrun", "/a/t.py"]}


def replicas(kind: str, field: str, **roles: dict[str, Any]) -> dict[str, Any]:
    """A Kubeflow job of roles: ``Worker={"replicas": 2, "container": {...}}``."""
    specs = {}
    for name, role in roles.items():
        container = {"name": "c", "image": "example/train:1", **TRAIN, **role.get("container", {})}
        rest = {key: value for key, value in role.items() if key not in ("container", "pod")}
        specs[name] = {**rest, "template": {"spec": {"containers": [container], **role.get("pod", {})}}}
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": "x"}, "spec": {field: specs}}


def pytorch(**roles: dict[str, Any]) -> dict[str, Any]:
    return replicas("PyTorchJob", "pytorchReplicaSpecs", **roles)


def test_a_master_unlike_its_workers_is_said_to_differ(imported: Imported) -> None:
    gpus = {"resources": {"limits": {"nvidia.com/gpu": 2, "memory": "8Gi"}}}
    master = {"replicas": 1, "container": {"env": [{"name": "ROLE", "value": "master"}]}}
    run, account = imported(pytorch(Master=master, Worker={"replicas": 3, "container": gpus}))
    assert (run["gang"]["nnodes"], run["gang"]["resources"]["gpu"]) == (4, 2)
    where = "spec.pytorchReplicaSpecs.Master.template.spec.containers[0].env"
    assert account.fates_in(f"{where}[0].value") == {"not representable"}
    assert account.fates_in("spec.pytorchReplicaSpecs.Master.template.spec.containers[0].image") == {"kept"}
    assert "Worker's is taken" in account.text_of(where, 0)


def test_a_role_without_replicas_has_no_pods(imported: Imported) -> None:
    run, account = imported(pytorch(Master={"replicas": 1}, Worker={"replicas": 0, "container": {"image": "other"}}))
    assert run["gang"]["nnodes"] == 1
    assert "0 replicas" in account.text_of("spec.pytorchReplicaSpecs.Worker", 0)


def test_an_elastic_gang_has_the_nodes_that_it_starts_with(imported: Imported) -> None:
    document = pytorch(Worker={"replicas": 3})
    document["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 64}
    run, account = imported(document)
    assert run["gang"]["nnodes"] == "1:3"
    assert account.fates_in("spec.elasticPolicy.maxReplicas") == {"changed"}


def test_a_number_that_is_filled_in_later_is_left_to_the_author(imported: Imported) -> None:
    run, account = imported(pytorch(Worker={"replicas": "${N}"}))
    assert run["gang"]["nnodes"] == 1
    assert account.fates_in("spec.pytorchReplicaSpecs.Worker.replicas") == {"by hand"}


def test_an_image_that_is_filled_in_later_is_not_the_default(imported: Imported, job: Job) -> None:
    run, account = imported(job({**TRAIN, "image": "<your-image>"}))
    assert run["image"] == "write.your/image:here"
    assert account.fates_in("spec.template.spec.containers[0].image") == {"by hand"}
    assert "# write your image" in account.record["toml"]


def test_the_launcher_of_an_mpi_job_may_be_a_node(imported: Imported) -> None:
    document = yaml.safe_load((FOLDER / "mpijob-v2beta1.yaml").read_text())
    document["spec"]["runLauncherAsWorker"] = True
    assert imported(document)[0]["gang"]["nnodes"] == 3


def test_items_of_a_list_and_a_name_among_several(imported: Imported, job: Job) -> None:
    one, other = job(TRAIN), job({"command": ["python", "/b/u.py"]})
    other["metadata"]["name"] = "other"
    both = {"apiVersion": "v1", "kind": "List", "items": [one, other]}
    run, account = imported(json.dumps(both), workload="other")
    assert run["script"] == "/b/u.py"
    assert account.fates_in("items[0]") == {"not representable"}
    with pytest.raises(InputError, match="several trainings in it: Job 'job', Job 'other'"):
        imported(both)
    with pytest.raises(InputError, match="Job 'job', Job 'job'; name the file or write the one alone into a file"):
        imported({**both, "items": [one, one]})
    with pytest.raises(InputError, match="there is no such object"):
        imported(both, workload="third")


def test_the_schedule_of_a_cron_job_is_left_to_the_author(imported: Imported, job: Job) -> None:
    cron = {"schedule": "0 3 * * *", "suspend": True, "jobTemplate": {"spec": job(TRAIN)["spec"]}}
    document = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": cron}
    run, account = imported(document)
    assert (run["name"], run["gang"]["nnodes"]) == ("nightly", 2)
    assert account.fates_in("spec.schedule") == {"by hand"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("My_Job.v2", "my-job-v2"), ("9lives", "train-9lives"), ("a" * 60, "a" * 40), ("gpt-", "gpt"), ("---", "train")],
)
def test_a_name_is_made_one_that_a_run_may_have(imported: Imported, job: Job, name: str, expected: str) -> None:
    document = job(TRAIN)
    document["metadata"] = {"generateName": name}
    assert imported(document)[0]["name"] == expected


@pytest.mark.parametrize(
    ("resources", "fabric"),
    [
        ({"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}, "aws-efa"),
        ({"nvidia.com/gpu": 8, "rdma/ib": 1}, "ib-sriov"),
        ({"nvidia.com/gpu": 8, "rdma/rdma_shared_device_a": 1}, "ib-shared"),
        ({"nvidia.com/gpu": 8, "nvidia.com/rdma-vf": 16}, "oci-roce"),
        ({"nvidia.com/gpu": 8}, ""),
    ],
)
def test_the_fabric_is_suggested_by_its_adapters(
    imported: Imported, job: Job, resources: dict[str, int], fabric: str
) -> None:
    from argosy.workflows.fabric.catalogue import profile_names

    _, account = imported(job({**TRAIN, "resources": {"limits": {**resources, "memory": "64Gi"}}}))
    said = account.why("gang.fabric = ")
    assert (f'"{fabric}"' in said) if fabric else not said
    assert not fabric or fabric in profile_names()


@pytest.mark.parametrize(
    ("args", "folder", "path"),
    [
        (["--output_dir", "out"], "/w", "out"),
        (["--checkpoint-dir=./ckpt/a"], "/w", "ckpt/a"),
        (["--save_dir", "/w/out"], "/w", "out"),
        (["--output_dir", "/mnt/out"], "/w", None),
        (["--output_dir", "s3://b/out"], "/w", None),
        (["--output_dir", "."], "/w", None),
        (["--save_steps", "100"], "/w", None),
    ],
)
def test_the_folder_of_checkpoints_is_guessed_from_the_arguments(
    imported: Imported, job: Job, args: list[str], folder: str, path: str | None
) -> None:
    run, account = imported(job({"command": ["torchrun", "t.py", *args], "workingDir": folder}))
    assert run.get("checkpoint", {}) == ({"mode": "opaque", "path": path} if path else {})
    assert "checkpoint" in account.why("" if path is None else "is taken for the folder")


@pytest.mark.parametrize(("mount", "given"), [("/mnt/nfs", "/mnt/nfs/out"), ("/w/out", "out"), ("/w", "out/a")])
def test_a_folder_on_a_volume_is_to_be_the_run_s_own(imported: Imported, job: Job, mount: str, given: str) -> None:
    container = {"command": ["torchrun", "t.py", "--output_dir", given], "workingDir": "/w"}
    container["volumeMounts"] = [{"name": "nfs", "mountPath": mount}]
    volumes = [{"name": "nfs", "persistentVolumeClaim": {"claimName": "nfs"}}]
    run, account = imported(job(container, volumes=volumes))
    assert "checkpoint" not in run
    said = account.why("lies on the volume 'nfs'")
    assert "write --output_dir {checkpoint}" in said
    assert f'path = "{mount}/{{run_id}}"' in said


def test_a_folder_on_a_disk_of_the_pod_s_own_is_taken_as_it_is(imported: Imported, job: Job) -> None:
    container = {"command": ["torchrun", "t.py", "--output_dir", "out"], "workingDir": "/w"}
    container["volumeMounts"] = [{"name": "disk", "mountPath": "/w/out"}]
    run, _ = imported(job(container, volumes=[{"name": "disk", "emptyDir": {"sizeLimit": "1Ti"}}]))
    assert run["checkpoint"] == {"mode": "opaque", "path": "out"}
    assert TrainingRun(**run).checkpoint.path == "out"


def test_shared_memory_fits_the_memory(imported: Imported, job: Job) -> None:
    mount = {"volumeMounts": [{"name": "d", "mountPath": "/dev/shm"}]}
    volume = [{"name": "d", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}]
    run, account = imported(job({**TRAIN, **mount}, volumes=volume))
    assert (run["gang"]["shm_size"], run["gang"]["resources"]["memory"]) == ("64Gi", "128Gi")
    assert "a guess" in account.why("gang.resources.memory")
    small = {"resources": {"limits": {"memory": "16Gi"}}}
    run, account = imported(job({**TRAIN, **mount, **small}, volumes=volume))
    assert (run["gang"]["shm_size"], run["gang"]["resources"]["memory"]) == ("16Gi", "16Gi")
    assert account.why("counts towards the memory limit")


def test_a_key_that_says_the_same_twice_stands_in_no_ones_way(job: Job) -> None:
    manifest = yaml.safe_dump(job(TRAIN))
    assert convert([read_text(f"{manifest}kind: Job\n".encode(), "x.yaml")]).kind == "Job"
    with pytest.raises(InputError, match="stands twice"):
        convert([read_text(f"{manifest}kind: CronJob\n".encode(), "x.yaml")])


def test_a_pod_of_little_memory_has_little_shared_memory(imported: Imported, job: Job) -> None:
    run, _ = imported(job({**TRAIN, "resources": {"limits": {"memory": "900Mi"}}}))
    assert (run["gang"]["shm_size"], run["gang"]["resources"]["memory"]) == ("64Mi", "900Mi")


def test_a_volume_whose_mount_is_refused_is_not_called_kept(imported: Imported, job: Job) -> None:
    mounts = {"volumeMounts": [{"name": "a_b", "mountPath": "/a"}, {"name": "c", "mountPath": "/c"}]}
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": f"claim-{name[0]}"}} for name in ("a_b", "c")]
    run, account = imported(job({**TRAIN, **mounts}, volumes=volumes))
    assert [each["name"] for each in run["gang"]["pod"]["volumes"]] == ["c"]
    volume = "spec.template.spec.volumes[{}].persistentVolumeClaim.claimName"
    assert (account.fates_in(volume.format(0)), account.fates_in(volume.format(1))) == ({"by hand"}, {"kept"})


def test_an_argument_that_a_run_does_not_take_keeps_its_place(imported: Imported, job: Job) -> None:
    run, account = imported(job({"command": ["torchrun", "/a/t.py", "--key", "sk-" + "a" * 30, "--x", "1"]}))
    assert run["args"] == ["--key", "FILL-IN", "--x", "1"]
    assert "credential" in account.why("FILL-IN")
    assert "a" * 30 not in json.dumps(account.record)


def test_a_credential_in_a_script_is_not_shown(imported: Imported, job: Job) -> None:
    token = "hf_" + "a" * 30
    script = (
        f"export HF_TOKEN={token} && pip install --index-url=https://me:{'b' * 20}@host/x y && python /a/t.py {token}"
    )
    run, account = imported(job({"command": ["sh", "-c", script], "env": [{"name": "API_KEY", "value": "c" * 20}]}))
    shown = json.dumps(account.record)
    assert not [secret for secret in (token, "b" * 20, "c" * 20) if secret in shown]
    assert run.get("env", {}) == {}
    assert {"HF_TOKEN=***", "pip install *** y"} <= {each["part"] for each in account.entries} | {
        each["part"].replace("--index-url=***", "***") for each in account.entries
    }


def test_scripts_without_torch_are_started_as_they_are(imported: Imported) -> None:
    one = {"replicas": 1, "container": TRAIN}
    starts = {"replicas": 1, "container": {"command": ["mpirun", "-np", "2", "python", "/a/t.py"]}}
    intel = replicas("MPIJob", "mpiReplicaSpecs", Launcher=starts, Worker=one)
    intel["spec"]["mpiImplementation"] = "Intel"
    for made, launcher in (
        (replicas("MPIJob", "mpiReplicaSpecs", Launcher=starts, Worker=one), "mpirun"),
        (intel, "torchrun"),
        (replicas("TFJob", "tfReplicaSpecs", Worker=one), "plain"),
        (replicas("XGBoostJob", "xgbReplicaSpecs", Master=one, Worker=one), "plain"),
        (pytorch(Worker=one), None),
    ):
        run, account = imported(made)
        assert run["gang"].get("launcher") == launcher
        by = {"mpirun": "mpirun starts the ranks", "plain": "argosy's launch starts the ranks itself"}
        told = {each["why"] for each in account.entries if each["into"] == "gang.launcher" and "start" in each["why"]}
        assert launcher not in by or told == {by[launcher]}
        needs = [each["why"] for each in account.entries if each["into"] == "image" and "needs argosy" in each["why"]]
        assert all(("torch" in each) is (launcher != "plain") for each in needs), needs
        assert needs


REFUSED = {
    "parameter servers": (
        replicas("TFJob", "tfReplicaSpecs", PS={"replicas": 2}, Worker={"replicas": 2}),
        "parameter servers .*collectives",
    ),
    "TPUs": (
        pytorch(Worker={"replicas": 1, "container": {"resources": {"limits": {"google.com/tpu": 4}}}}),
        "TPUs are trained on with torch_xla",
    ),
    "Gaudi": (
        pytorch(Worker={"replicas": 1, "container": {"resources": {"limits": {"habana.ai/gaudi": 8}}}}),
        "Gaudi is trained on with",
    ),
    "Trainium": (
        pytorch(Worker={"replicas": 1, "container": {"resources": {"limits": {"aws.amazon.com/neuroncore": 8}}}}),
        "Trainium",
    ),
    "no replicas": (pytorch(Worker={"replicas": 0}), "nothing trains"),
    "fewer pods than none": (pytorch(Worker={"replicas": -2}), r"line \d+: Worker has '-2' replicas; .* at least 1"),
    "more pods than a run has": (pytorch(Worker={"replicas": 99999}), "Worker has '99999' replicas; .* at most 10000"),
    "a number in words": (pytorch(Worker={"replicas": "two"}), "Worker has 'two' replicas, which is no whole number"),
    "a list to be built": (
        {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": ["a.yaml"]},
        r"no manifest; kustomize build FOLDER \| argosy import -",
    ),
    "no roles": (pytorch(), "nothing trains"),
    "no launcher": (replicas("MPIJob", "mpiReplicaSpecs", Worker={"replicas": 1}), "needs a Launcher and a Worker"),
    "JAX": (replicas("JAXJob", "jaxReplicaSpecs", Worker={"replicas": 1}), "JAXJob 'x' .*cannot be imported"),
    "no entrypoint": (
        {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "r"}, "spec": {"rayClusterSpec": {}}},
        "no spec.entrypoint",
    ),
    "a cluster": ({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "r"}}, "no entrypoint"),
    "a deployment": ({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}, "serves"),
    "a pod": ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, "write a Job around it"),
    "a workflow": ({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"}}, "itself"),
    "a service": ({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}, r"it holds Service"),
    "a queue of tasks": (
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "q"},
         "spec": {"completions": 9, "parallelism": 3}},
        "a queue of tasks",
    ),
    "nothing": ("", "no training in it"),
    "no YAML": ("apiVersion: v1\nkind: [", "is not YAML"),
    "a chart": ("kind: {{ .Values.kind }}\n", "helm template"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_imported_is_refused_with_the_reason(imported: Imported, name: str) -> None:
    manifest, why = REFUSED[name]
    with pytest.raises(InputError, match=why):
        imported(manifest)


def test_a_script_is_no_template(imported: Imported, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text('state = {"epoch": 0, "w": ones(4): 1}\n')
    with pytest.raises(InputError, match=r"no manifest .* name a file of YAML"):
        imported(tmp_path / "train.py")


def test_a_variable_of_all_replicas_is_told_by_its_name(imported: Imported) -> None:
    shared = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    master = {"replicas": 1, "container": {"env": [{"name": "ONLY", "value": "x"}, *shared]}}
    run, account = imported(pytorch(Master=master, Worker={"replicas": 1, "container": {"env": shared}}))
    assert run["env"] == {"ONLY": "x", "A": "1", "B": "2"}
    where = "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].env"
    assert all(account.fates_in(f"{where}[{index}].value") == {"kept"} for index in (0, 1))


def test_what_only_the_ray_head_has_is_told(imported: Imported) -> None:
    def pod(**container: Any) -> dict[str, Any]:
        volumes = [{"name": "code", "configMap": {"name": "code"}}]
        return {"spec": {"containers": [{"name": "ray", "image": "a/ray:1", **container}], "volumes": volumes}}

    mounts = [{"name": "code", "mountPath": "/code"}]
    env = [{"name": "EPOCHS", "value": "3"}]
    cluster = {
        "headGroupSpec": {"template": pod(volumeMounts=mounts, env=env)},
        "workerGroupSpecs": [{"groupName": "g", "replicas": 2, "template": pod()}],
    }
    spec = {"entrypoint": "python /code/train.py", "rayClusterSpec": cluster, "runtimeEnvYAML": "working_dir: s3://b/c"}
    _, account = imported({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "r"}, "spec": spec})
    where = "spec.rayClusterSpec.headGroupSpec.template.spec.containers[0]"
    assert account.fates_in(f"{where}.env[0]") == {"by hand"}
    assert account.fates_in(f"{where}.volumeMounts[0]") == {"by hand"}
    assert "build its working_dir" in account.text_of("spec.runtimeEnvYAML", 0)
