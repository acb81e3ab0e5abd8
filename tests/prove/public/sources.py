"""Which jobs of others are run, where they lie, and what is changed in each: nothing of theirs is kept here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.prove.public.data import digits, images, numbers, place

_OPERATOR = ("kubeflow/training-operator", "078ec30ff26649a07d2e28893c332d4cef70e233")
_EKS = ("aws-samples/aws-do-eks", "f721602f7389b817a74fec8343862733bce638ed")
_LAB = ("GoogleCloudPlatform/mlops-on-gcp", "9008dcf2f9195ee0b8653e1713dc0591391ca957")
_KUBERAY = ("ray-project/kuberay", "feeaf72facab4881ba2b179248bb67315634e229")


@dataclass(frozen=True, kw_only=True)
class Job:
    """``manifest`` and ``script`` (or a module) from ``folder`` of the repository at this commit.

    Args:
        args: of the script, where they are not those of the manifest; ``{folder}`` is the folder of the job here.
        env: what its image sets; ``{packages}``: what it has, ``{path}``: this machine's PATH.
        told: what is changed, and why it has to be.
        kill: the fault.
        checkpoint: the folder, and which of its files are kept.
        resume: ``resume_args``.
        begun: what it prints when there is something to lose, on a cluster; empty: never run there.
        says: what the script prints when it goes on from what it saved; empty: it never does.
        end: a file that the last commit holds, and a text in it.
        edits: a file of theirs, a text in it, and what stands in its place here.
        gang: fields that the author of the run writes, None: leaves out.
        packages: whose packages it needs, where they are another kind's.
        options: of ``argosy run``.
    """

    kind: str
    source: tuple[str, str]
    folder: str
    manifest: str
    licence: str
    script: str
    told: str
    kill: str
    checkpoint: tuple[str, ...]
    args: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    begun: str = ""
    says: str = ""
    end: tuple[str, str] = ("", "")
    edits: tuple[tuple[str, str, str], ...] = ()
    data: Callable[[Path], None] = images
    env: tuple[tuple[str, str], ...] = ()
    gang: tuple[tuple[str, object], ...] = ()
    packages: str = ""
    options: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """For the table."""
        repository, commit = self.source
        return f"{repository} {commit[:7]} `{self.folder}`"

    def fetch(self, into: Path, seen: str) -> None:
        """Their folder and their manifest, as ``job.yaml``, at the commit; ranks see the folder as ``seen``."""
        repository, commit = self.source
        clone = _clone(repository, commit)
        into.mkdir(parents=True)
        depth = str(len(Path(self.folder).parts))
        packed = subprocess.run([*clone, "archive", commit, self.folder], capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", into, "--strip-components", depth], input=packed, check=True)
        path = os.path.normpath(f"{self.folder}/{self.manifest}")
        told = subprocess.run([*clone, "show", f"{commit}:{path}"], capture_output=True, check=True).stdout
        (into / "job.yaml").write_bytes(told)
        for name, old, new in self.edits:
            text = (into / name).read_text()
            assert old in text, f"{name} has no {old!r}"
            (into / name).write_text(text.replace(old, new.replace("{folder}", seen)))


def _clone(repository: str, commit: str) -> list[str]:
    """The head of a git command in ``ARGOSY_PUBLIC/OWNER+NAME``, which is made and fills itself where it is missing."""
    path = Path(os.environ["ARGOSY_PUBLIC"]) / repository.replace("/", "+")
    git = ["git", "--git-dir", str(path / ".git" if (path / ".git").exists() else path)]
    if not path.exists():
        subprocess.run(["git", "init", "--quiet", "--bare", path], check=True)
    if subprocess.run([*git, "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True).returncode:
        fetch = ["fetch", "--quiet", "--depth=1", f"https://github.com/{repository}", commit]
        subprocess.run([*git, *fetch], check=True)
    return git


_RESUMED = r"(?s)'resume_step': [1-9](?:(?!Epoch \d).)*"
"""Up to the first epoch that is told after a restart."""
_LOADED = r"=> loaded checkpoint (?:file: \S+|'\S+' \(epoch \d+\))"
_RAY = "fine-tune-pytorch-resnet-image-classifier.py"
JOBS = (
    Job(
        kind="PyTorchJob", source=_OPERATOR, folder="examples/pytorch/elastic/imagenet", manifest="imagenet.yaml",
        licence="Apache-2.0, the script BSD-3", script="imagenet.py",
        args=("--arch=shufflenet_v2_x0_5", "--epochs=6", "--batch-size=3", "--workers=0", "{folder}/data",
              "--checkpoint-file=out/checkpoint.pth.tar"),
        told="a smaller network, 6 epochs, 16 images of noise, its checkpoint below the folder",
        kill="kill:rank=1@step=3", checkpoint=("out", "checkpoint.pth.tar"), says=_LOADED,
    ),
    Job(
        kind="XGBoostJob", source=_OPERATOR, folder="examples/xgboost/xgboost-dist", manifest="../xgboostjob.yaml",
        licence="Apache-2.0", script="main.py",
        args=("--job_type=Train", "--n_estimators=6000", "--model_path=models/model", "--model_storage_type=local"),
        told="6,000 trees, its model below the folder (--model_path of the Master for all); in its tracker "
        "Thread.isAlive is is_alive since Python 3.9",
        kill="kill:rank=1@seconds=12", begun="starting to train xgboost", checkpoint=("models", "model"),
        edits=(("tracker.py", "isAlive", "is_alive"),), data=place,
    ),
    Job(
        kind="TFJob", source=_OPERATOR, folder="examples/tensorflow/distribution_strategy",
        manifest="multi_worker_tfjob.yaml", licence="Apache-2.0", script="multi_worker_strategy-with-keras.py",
        args=("--saved_model_dir=out/saved_model", "--checkpoint_dir=out"),
        told="320 images of noise, its checkpoints below the folder, no GPU (-j 2x1), tf_keras as TensorFlow 2.11 had "
        "it",
        kill="kill:rank=1@step=150", checkpoint=("out", "ckpt_*", "checkpoint"), data=digits,
        env=(("TFDS_DATA_DIR", "{folder}/data"), ("TF_USE_LEGACY_KERAS", "1")), options=("-j", "2x1"),
    ),
    Job(
        kind="MPIJob", source=_EKS, folder="Container-Root/eks/deployment/distributed-training/pytorch/mpijob",
        manifest="imagenet-cpu.yaml-template", licence="MIT-0", script="imagenet.py",
        args=("--arch=resnet18", "--epochs=20", "--batch-size=32", "--workers=0", "--world-size=4",
              "--dist-backend=gloo", "--dist-url=env://", "{folder}/data"),
        resume=("--resume={newest}",),
        told="its template's image filled in; 16 images of noise, no loader processes; --dist-url=env:// for the name "
        "of a pod, as import says; without --multiprocessing-distributed, with which its own --resume needs a GPU",
        kill="kill:rank=1@step=8", begun=r"Epoch: \[5\]", checkpoint=(".", "checkpoint.pth.tar"), says=_LOADED,
        packages="PyTorchJob",
        edits=(("job.yaml", "${REGISTRY}${IMAGE}${TAG}-${ext}", "imagenet-mpi:latest-cpu"),),
    ),
    Job(
        kind="RayJob", source=_KUBERAY, folder="ray-operator/config/samples/pytorch-resnet-image-classifier",
        manifest="ray-job.pytorch-image-classifier.yaml", licence="Apache-2.0", script=_RAY,
        told='launcher = "ray", as import says; 2 nodes and 3 workers of one CPU in place of 4 of one GPU; 16 images '
        "of noise; resnet18 without its download; storage_path below the folder in place of a bucket of Google's; "
        "RAY_TRAIN_V2_ENABLED=0 for TorchTrainer.restore, which Ray 2.60 has in the older Train only",
        kill="kill:rank=1@step=4", packages="PyTorchJob", says=r"Restored on \S+ from checkpoint",
        checkpoint=("cluster_storage/finetune-resnet", "*.pkl", "*.json", "*/*.pkl", "*/checkpoint_*/**/*"),
        edits=(
            (_RAY, '"/mnt/cluster_storage"', 'os.path.abspath("cluster_storage")'),
            (_RAY, 'expanduser("/mnt/', 'abspath("'),
            (_RAY, '"./hymenoptera_data"', '"{folder}/data"'),
            (_RAY, "models.resnet50(pretrained=True)", "models.resnet18()"),
            (_RAY, 'use_gpu=True, resources_per_worker={"CPU": 1, "GPU": 1}', 'resources_per_worker={"CPU": 1}'),
        ),
        env=(("NUM_WORKERS", "3"), ("RAY_TRAIN_V2_ENABLED", "0")),
        gang=(("launcher", "ray"), ("nproc_per_node", None), ("nnodes", 2), ("pod", None)), options=("-j", "2x1"),
    ),
    Job(
        kind="TFJob", source=_LAB, folder="workshops/mlep-qwiklabs/distributed-training-gke", manifest="tfjob.yaml",
        licence="Apache-2.0", script="mnist.main",
        args=("--epochs=8", "--steps_per_epoch=60", "--per_worker_batch=8", "--saved_model_path=out/saved_model",
              "--checkpoint_path=out/checkpoints"),
        told="320 images of noise, 8 in a batch, 8 epochs of 60 steps; checkpoints and model below the folder in place "
        "of a bucket of Google's; tf_keras as TensorFlow 2.4 had it",
        kill="kill:rank=1@step=150", checkpoint=("out", "checkpoints/chief/*", "saved_model/**/*"), data=digits,
        says=_RESUMED + r"(Epoch (?!1/)\d+/8)", end=("saved_model/saved_model.pb", ""),
        env=(("TFDS_DATA_DIR", "{folder}/data"), ("TF_USE_LEGACY_KERAS", "1")),
    ),
    Job(
        kind="XGBoostJob", source=_OPERATOR, folder="examples/xgboost/lightgbm-dist",
        manifest="xgboostjob_v1_lightgbm_dist_training.yaml", licence="Apache-2.0", script="main.py",
        args=("--job_type=Train", "--boosting_type=gbdt", "--objective=binary", "--metric=binary_logloss,auc",
              "--metric_freq=1", "--is_training_metric=true", "--max_bin=255", "--data={folder}/data/binary.train",
              "--valid_data={folder}/data/binary.test", "--num_trees=1000", "--learning_rate=0.01", "--num_leaves=63",
              "--tree_learner=feature", "--feature_fraction=0.8", "--bagging_freq=5", "--bagging_fraction=0.8",
              "--min_data_in_leaf=50", "--min_sum_hessian_in_leaf=50", "--is_enable_sparse=true",
              "--use_two_round_loading=false", "--is_save_binary_file=false", "--snapshot_freq=100",
              "--num_threads=1"),
        resume=("--input_model={newest:model.txt.snapshot_iter_*}",),
        told="40,000 rows of noise, 1,000 trees, learning_rate 0.01 in place of 01 (with noise its trees soon have no "
        "splits), one thread; snapshot_freq=100, and input_model after a restart: its 1,000 trees are added to the "
        "snapshot's; one worker in place of two (-j 2x1), which on one machine would have one address and one port",
        kill="kill:rank=1@step=450", checkpoint=(".", "model.txt*"), data=numbers, packages="LightGBM",
        says=r"--input_model=[^'\s]+", end=("model.txt", r"(?s).*(Tree=1\d\d\d)\n"),
        env=(("PATH", "{packages}/bin:{path}"),), options=("-j", "2x1"),
    ),
)  # fmt: skip
