"""What each manifest of the folder must become, read from the manifest by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "manifests"


@dataclass(frozen=True)
class Case:
    """
    Args:
        pod: keys from the document to the pod's spec; a number is the place in a list.
        argv: script or module, then the arguments, as a rank gets them.
        env: what its environment holds besides the literal values of the manifest.
        not_env: literal values of the manifest that it does not hold.
    """

    file: str
    pod: tuple[str | int, ...]
    nodes: int
    ranks: int
    argv: tuple[str, ...]
    document: int = 0
    container: int = 0
    folder: str = ""
    env: tuple[tuple[str, str], ...] = ()
    not_env: tuple[str, ...] = ()

    @property
    def runtime(self) -> str:
        """Who makes the pods: the file is named after the kind."""
        kind = self.file.partition(".")[0].partition("-")[0]
        return {"indexed": "job"}.get(kind, kind)

    @property
    def path(self) -> Path:
        return FOLDER / self.file

    def pod_spec(self) -> dict[str, Any]:
        value: Any = list(yaml.safe_load_all(self.path.read_text()))[self.document]
        for key in self.pod:
            value = value[key]
        assert isinstance(value, dict)
        return value

    def __str__(self) -> str:
        return self.file.partition(".")[0]


def kubeflow(field: str, role: str) -> tuple[str | int, ...]:
    return ("spec", field, role, "template", "spec")


CASES = (
    Case(
        "pytorchjob.yaml", kubeflow("pytorchReplicaSpecs", "Worker"), 4, 8,
        ("train.py", "--lr", "1e-4", "--name", "run base", "--epochs", "5", "--output_dir", "out/ckpt"),
        folder="/workspace/app", env=(("OMP_NUM_THREADS", "8"), ("TOKENIZERS_PARALLELISM", "false")),
    ),
    Case(
        "pytorchjob-elastic.yaml", kubeflow("pytorchReplicaSpecs", "Worker"), 4, 2,
        ("/workspace/examples/imagenet.py", "--arch=resnet50", "--epochs=20", "--batch-size", "32",
         "--checkpoint-file=/ckpt/last.pt", "/data/tiny"),
    ),
    Case(
        "tfjob.yaml", kubeflow("tfReplicaSpecs", "Worker"), 2, 1,
        ("/var/tf_mnist/mnist.py", "--saved_model_dir=/train/saved_model/", "--checkpoint_dir=/train/checkpoint"),
    ),
    Case(
        "xgboostjob.yaml", kubeflow("xgbReplicaSpecs", "Worker"), 3, 1,
        ("main.py", "--job_type=Train", "--xgboost_parameter=objective:multi:softprob,num_class:3"), folder="/opt/xgb",
    ),
    Case(
        "mpijob-v2beta1.yaml", kubeflow("mpiReplicaSpecs", "Worker"), 2, 4,
        ("/examples/bert.py", "--batch-size", "16"), env=(("NCCL_DEBUG", "WARN"), ("BERT_CACHE", "/cache")),
    ),
    Case(
        "mpijob-v1.json", kubeflow("mpiReplicaSpecs", "Worker"), 2, 1,
        ("bench.py", "--model=resnet101", "--dir", "/results"), folder="/bench",
        env=(("NCCL_SOCKET_IFNAME", "eth0"),),
    ),
    Case(
        "indexed-job.yaml", ("spec", "template", "spec"), 2, 4,
        ("nanogpt.train", "config/gpt2.py", "--compile=False", "--dataset=/mnt/data/owt", "--seed", "7"), document=4,
        folder="/workspace/nanogpt", not_env=("CACHE",),
        env=(("WANDB_MODE", "offline"), ("MODE", "offline"), ("CACHE", "/mnt/data/owt/cache")),
    ),
    Case(
        "jobset.yaml", ("spec", "replicatedJobs", 1, "template", "spec", "template", "spec"), 2, 8,
        ("examples/pretrain.py", "--config-name=mixtral", "model.x=[1, 2]", "run.id=FILL-IN"), folder="/opt/NeMo",
        env=(("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64"), ("OMP_NUM_THREADS", "12")),
    ),
    Case(
        "trainjob-runtime.yaml",
        ("spec", "template", "spec", "replicatedJobs", 1, "template", "spec", "template", "spec"), 3, 2,
        ("/app/segment.py", "--steps", "100", "--of-the-runtime"), env=(("SEED", "5"),), not_env=("SEED",),
    ),
    Case("volcano.yaml", ("spec", "tasks", 1, "template", "spec"), 3, 4, ("/src/ddp.py", "--seed=1"),
         env=(("ACCELERATE_MIXED_PRECISION", "bf16"),)),
    Case(
        "rayjob.yaml", ("spec", "rayClusterSpec", "workerGroupSpecs", 0, "template", "spec"), 2, 1,
        ("/home/ray/samples/train.py", "--epochs", "2", "--note", "two words"),
    ),
)  # fmt: skip
