"""What the author should write besides: where checkpoints go, which fabric, what the image needs."""

from __future__ import annotations

import posixpath
import re
from typing import Final

from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Pod
from argosy.workflows.spec.checkpoint_folder import is_of_pod
from argosy.workflows.spec.storage import is_below

_FOLDER: Final = re.compile(
    r"--?((output|checkpoint|ckpt|save|model|results?)[-_]?(dir|path|folder|directory)|save|checkpoint[-_]?(s|out)?"
    r"|output|default[-_]root[-_]dir|run[-_]dir|save[-_]?to)"
)
_IMAGE: Final = "the image needs argosy beside torch: in a clone of it, pip install '.[train]'"
_NO_TORCH: Final = "the image needs argosy: in a clone of it, pip install '.[step]'"
_NEED: Final = "a run has succeeded when a verified checkpoint reached its end: "
_FABRICS: Final = (
    ("vpc.amazonaws.com/efa", "aws-efa"),
    ("nvidia.com/rdma-vf", "oci-roce"),
    ("rdma/shared_ib", "ib-shared"),
    ("rdma/hca_shared", "ib-shared"),
    ("rdma/rdma_shared", "ib-shared"),
    ("rdma/ib", "ib-sriov"),
    ("nvidia.com/mlnx", "ib-sriov"),
    ("openshift.io/mlx", "ib-sriov"),
    ("rdma/", "ib-shared"),
)
_SIGNS: Final = (
    ("tcpxo", "gcp-a3-mega"), ("FASTRAK", "gcp-a3-mega"), ("tcpx-", "gcp-a3-high"), ("GPUDIRECTTCPX", "gcp-a3-high"),
    ("networking.gke.io/interfaces", "gcp-a3u-a4"), ("/usr/local/gib", "gcp-a3u-a4"), ("resourceClaims", "gb200-mnnvl"),
    ("FI_PROVIDER", "aws-efa"), ("topo.xml", "azure-nd"),
)  # fmt: skip


def suggest(pod: Pod, container: Container, draft: Draft, account: Account) -> None:
    """Say what no value of the manifest says."""
    needs = _NO_TORCH if draft.get("gang.runtime") in ("tfjob", "xgboostjob") else _IMAGE
    account.advise(container.image or container.node, needs, "image")
    if not draft.has_note("image"):
        draft.note("image", needs)
    _checkpoint(container.node, draft, account)
    if not draft.get("gang.fabric"):
        _fabric(pod, container, account)
    why = "the run's store: s3://…, gs://…, az://…, or a ReadWriteMany claim named argosy (the default)"
    account.advise(container.node, why, "storage.uri")


def _checkpoint(near: Node, draft: Draft, account: Account) -> None:
    found = _folder(draft.get("args", []))
    if found is None:
        why = f'{_NEED}save with argosy.Checkpointer, or write [checkpoint] mode = "opaque" and path'
        account.advise(near, why, "checkpoint")
        return
    option, folder = found
    path = _relative(folder, draft.get("working_dir", ""))
    at = posixpath.normpath(posixpath.join(draft.get("working_dir", "") or "/", folder))
    for volume in draft.get("gang.pod.volumes", []):
        mount = volume["mount_path"]
        if is_below(at, mount) and (path is None or not is_of_pod(volume["source"])):
            why = f"{_NEED}{option} {folder} lies on the volume {volume['name']!r}; write {option} {{checkpoint}}, and "
            why += f'[checkpoint] mode = "opaque", path = "{mount}/{{run_id}}": a folder of the run\'s own'
            account.advise(near, why, "checkpoint")
            return
    if path is None:
        why = f"{_NEED}{option} {folder} is outside of the working_dir; write a folder below it, then [checkpoint] "
        why += 'mode = "opaque", path'
        account.advise(near, why, "checkpoint")
        return
    draft.put("checkpoint.mode", "opaque")
    draft.put("checkpoint.path", path)
    draft.note("checkpoint.path", f"from {option}: what the script writes there is committed")
    why = f"{option} {folder} is taken for the folder of the checkpoints; resume_args makes the script go on from one"
    account.advise(near, why, "checkpoint")


def _folder(args: list[str]) -> tuple[str, str] | None:
    for index, text in enumerate(args):
        option, given, value = text.partition("=")
        if _FOLDER.fullmatch(option):
            value = value if given else (args[index + 1] if index + 1 < len(args) else "")
            if value and not value.startswith("-") and "://" not in value and "FILL-IN" not in value:
                return option, value
    return None


def _relative(folder: str, working_dir: str) -> str | None:
    """The folder below the working_dir; None outside of it."""
    path = posixpath.normpath(folder)
    if path.startswith("/"):
        if not working_dir or not path.startswith(f"{working_dir.rstrip('/')}/"):
            return None
        path = path[len(working_dir.rstrip("/")) + 1 :]
    return None if path in (".", "") or path.startswith("..") or path.startswith("~") else path


def _fabric(pod: Pod, container: Container, account: Account) -> None:
    names = [*container.limits.entries, *container.requests.entries]
    found = next((fabric for sign, fabric in _FABRICS if any(name.startswith(sign) for name in names)), None)
    near = container.node["resources"]
    if found is None:
        text = str(pod.spec.data) + str(pod.metadata.data)
        found = next((fabric for sign, fabric in _SIGNS if sign in text), None)
    if found is not None:
        why = f'gang.fabric = "{found}" sets what this network needs: argosy explain-config fabric.{found}'
        account.advise(near, why, "gang.fabric")
