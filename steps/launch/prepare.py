"""Before the ranks start: the code, this node's data, the command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from argosy.steps.code import unpack
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.errors import StepError
from argosy.steps.launch.reporter import Reporter
from argosy.steps.paths import resolve
from argosy.steps.store.base import ObjectStore


def prepare_code(args: LaunchArgs, store: ObjectStore) -> Path:
    """The ranks' working directory, with the code in it.

    Raises:
        StepError: the archive is missing or wrong (``config_or_rbac``), or the script is not there
            (``launcher_usage``).
    """
    workdir = resolve(args.workdir)
    workdir.mkdir(parents=True, exist_ok=True)
    if args.code_digest:
        unpack(store, args.name, args.code_digest, workdir)
    if args.script and not (workdir / args.script).is_file():
        raise StepError(Cause.LAUNCHER_USAGE, f"script {args.script!r} is not in {args.workdir}: check script and code")
    return workdir


def rank_command(args: LaunchArgs, extra: Sequence[str]) -> list[str]:
    """argv of one rank: the interpreter that runs us, script or module, arguments."""
    entry = ["-m", args.module] if args.module else [args.script]
    return [sys.executable, *entry, *args.arg, *extra]


def prepare_data(
    args: LaunchArgs, assignment: Assignment, store: ObjectStore, reporter: Reporter, go_on: Callable[[], None]
) -> tuple[str, str]:
    """Stage this node's share; the folder (empty: none) and the dataset's uri.

    ``go_on`` is called now and then and may raise to give up.

    Raises:
        StepError: the dataset changed, its store failed, or the disk is too small.
    """
    if not assignment.dataset_digest or args.staging == "none":
        return "", ""
    # Imported here: a run without data starts without it.
    from argosy.steps.data.plan import node_share
    from argosy.steps.data.staging import StageProgress, shared_folder, stage_objects
    from argosy.steps.data.stored_manifest import load_manifest, load_units

    manifest = load_manifest(store, args.name, assignment.dataset_digest)
    if args.staging == "stream":
        return "", manifest.uri
    if args.staging == "shared":
        return str(shared_folder(resolve(args.data_path), manifest.digest)), manifest.uri
    into = resolve(args.data_path)
    node = reporter.node

    def tell(now: StageProgress) -> None:
        reporter.event("staging", node=node, **vars(now))
        go_on()

    units = load_units(store, args.name, manifest) if args.layout == "sharded" else None
    share = node_share(manifest, args.layout, assignment.node_rank, assignment.nnodes, units)
    done = stage_objects(manifest, share, into, on_progress=tell)
    reporter.event("staged", node=node, bytes=done.bytes, fetched_bytes=done.fetched_bytes, seconds=done.seconds)
    return str(into), manifest.uri
