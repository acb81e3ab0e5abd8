"""Before the ranks start: the code, this node's data, the command."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.steps.child_python import child_command
from argosy.steps.code import unpack
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment, StandBy
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.placeholders import fill
from argosy.steps.contract.transport import ExpectedTransport
from argosy.steps.launch.identity import Identity
from argosy.steps.paths import resolve
from argosy.steps.store.allowed import allowed_until_now
from argosy.steps.store.base import ObjectStore

if TYPE_CHECKING:
    from argosy.steps.data.manifest import DatasetManifest


Tell = Callable[..., None]
"""As :meth:`argosy.steps.launch.reporter.Reporter.event`."""


def prepare_code(args: LaunchArgs, store: ObjectStore) -> Path:
    """The ranks' working directory, with the code in it.

    Raises:
        StepError: the archive is missing (``s3_missing``) or wrong (``config_or_rbac``), or the script is not
            there (``launcher_usage``).
    """
    workdir = resolve(args.workdir)
    workdir.mkdir(parents=True, exist_ok=True)
    if args.code_digest:
        unpack(store, args.name, args.code_digest, workdir)
    if args.script and not (workdir / args.script).is_file():
        raise StepError(Cause.LAUNCHER_USAGE, f"script {args.script!r} is not in {args.workdir}: check script and code")
    return workdir


def rank_command(
    args: LaunchArgs, further: Sequence[str], resume: Sequence[str], environ: Mapping[str, str]
) -> list[str]:
    """argv of one rank: the interpreter that runs us, script or module, arguments; those that resume come last.

    ``{data}`` and the like in the run's arguments and in ``further`` are replaced; ``resume`` is complete.
    """
    entry = ["-m", args.module] if args.module else [args.script]
    return [sys.executable, *entry, *(fill(text, environ) for text in (*args.arg, *further)), *resume]


def preflight_command(args: LaunchArgs, assignment: Assignment) -> list[str]:
    """What stands before a rank's command so that the gang is checked first; empty: nothing is checked.

    Under ``warn`` once in a gang: a restart on the same pods would be told the same. Under ``enforce`` before each
    start: what was refused and blamed nobody starts on the same pods again.
    """
    if not args.preflight or (assignment.restart > 0 and args.preflight != "enforce"):
        return []
    expected = ExpectedTransport.from_json(args.expected_transport) if args.expected_transport else None
    floor = 0.0 if expected is None else expected.busbw_floor_gbs
    return child_command("argosy.steps.preflight", f"--mode={args.preflight}", f"--floor={floor:g}", "--")


@contextlib.contextmanager
def prepared_data(
    args: LaunchArgs,
    assignment: Assignment | StandBy,
    store: ObjectStore,
    identity: Identity,
    tell: Tell,
    go_on: Callable[[], None],
) -> Iterator[tuple[str, str]]:
    """This node's data, staged: the folder (empty: none) and the dataset's uri; no cache evicts it meanwhile.

    ``tell`` hears how they come.
    ``go_on`` is called now and then and may raise to give up.

    Raises:
        StepError: the dataset changed, its store failed, or the disk is too small.
    """
    if not assignment.dataset_digest or args.staging == "none":
        yield "", ""
        return
    # Imported here: a run without data starts without it.
    from argosy.steps.data.stored_manifest import load_manifest

    manifest = load_manifest(store, args.name, assignment.dataset_digest)
    if args.staging == "stream":
        yield "", manifest.uri
        return
    with _staged(args, assignment, store, manifest, identity, tell, go_on) as folder:
        yield str(folder), manifest.uri


@contextlib.contextmanager
def _staged(
    args: LaunchArgs,
    assignment: Assignment | StandBy,
    store: ObjectStore,
    manifest: DatasetManifest,
    identity: Identity,
    tell: Tell,
    go_on: Callable[[], None],
) -> Iterator[Path]:
    from argosy.steps.data.access import may_read
    from argosy.steps.data.cache.use import Cache, use
    from argosy.steps.data.plan import node_share
    from argosy.steps.data.staging import StageProgress, StageResult, stage_objects
    from argosy.steps.data.stored_manifest import load_units

    shared, came = args.staging == "shared", 0

    def progress(now: StageProgress) -> None:
        nonlocal came
        came = now.fetched_bytes
        tell("staging", node=identity.node, **vars(now))
        go_on()

    def still() -> bool:
        return not came or may_read(store, args.name, manifest)

    def done(result: StageResult) -> None:
        seconds, fetched = result.seconds, result.fetched_bytes
        tell("staged", node=identity.node, bytes=result.bytes, fetched_bytes=fetched, seconds=seconds)

    layout = "replicated" if shared else args.layout
    units = load_units(store, args.name, manifest) if layout == "sharded" else None
    objects = node_share(manifest, layout, assignment.node_rank, assignment.nnodes, units)
    if not args.cache_path:
        into = resolve(args.data_path)
        with allowed_until_now(still):
            done(stage_objects(manifest, objects, into, on_progress=progress))
        yield into
        return
    # The step `stage` has just looked through what is shared; a thousand nodes need not do it again.
    verify = "none" if shared else args.cache_verify
    cache = Cache.of(resolve(args.cache_path), args.cache_gib, verify, args.cache_access)
    who = f"{identity.pod} on {identity.node}"
    with contextlib.ExitStack() as stack:
        used = use(cache, manifest, objects, who=who, on_progress=progress, go_on=go_on, run=assignment.workflow)
        with allowed_until_now(still):
            staged = stack.enter_context(used)
        done(staged.result)
        yield staged.path
