"""From the file on the command line to the workflow's bytes."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlsplit

import click

from argosy.steps.contract.errors import InputError
from argosy.steps.paths import resolve_file_uri
from argosy.steps.record.building import RUN_NAME, STORE_URI
from argosy.workflows.cli.described import description_here
from argosy.workflows.cli.document import annotation, claim_mounts, read_workflow
from argosy.workflows.cli.output import harmless, typed
from argosy.workflows.cli.run_folder import mounted
from argosy.workflows.cli.written import write_whole

if TYPE_CHECKING:
    from argosy.workflows.code import CodeArchive
    from argosy.workflows.spec.run import TrainingRun

_NAMED = 3
LARGEST_FILE = 16 << 20
"""Bytes; a Workflow that a cluster takes has less than 2 MiB."""
Kind = Literal["Workflow", "WorkflowTemplate"]


@dataclass(frozen=True)
class Source:
    """A workflow, and what it was made from; ``run`` and ``archive`` are None for a file of YAML."""

    path: Path
    yaml: bytes
    document: dict[str, Any]
    run: TrainingRun | None
    archive: CodeArchive | None

    @property
    def sha256(self) -> str:
        """Digest of the YAML's bytes, as hex."""
        return hashlib.sha256(self.yaml).hexdigest()

    @property
    def store_uri(self) -> str:
        """The run's store; "" for a workflow that is none of ours."""
        return annotation(self.document, STORE_URI)

    @property
    def run_name(self) -> str:
        """``TrainingRun.name``; "" for a workflow that is none of ours."""
        return annotation(self.document, RUN_NAME)


def read_bytes(path: Path) -> bytes:
    """The file's bytes.

    Raises:
        InputError: it does not exist, is a folder, cannot be read, or is larger than :data:`LARGEST_FILE`.
    """
    try:
        if path.is_dir():
            raise InputError(f"FILE {path}: is a folder; name the file in it, for example {path / 'run.toml'}")
        if not path.is_file() and path.exists():
            raise InputError(f"FILE {path}: is no regular file; name a run.toml or a workflow")
        with path.open("rb") as source:
            data = source.read(LARGEST_FILE + 1)
    except InputError:
        raise
    except FileNotFoundError as error:
        one = f"argosy compile run.toml -o {path}" if path.suffix in (".yaml", ".yml") else "argosy init train.py"
        raise InputError(f"FILE {path}: no such file; write one with: {one}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"FILE {path}: cannot be read ({error}); check its name and permissions") from error
    if len(data) > LARGEST_FILE:
        raise InputError(f"FILE {path}: larger than {LARGEST_FILE >> 20} MiB; name a run.toml or a workflow")
    return data


def _check_entries(run: TrainingRun, archive: CodeArchive, path: Path) -> None:
    """The scripts and modules that the run names are in the code; a module of none of its packages may be installed."""
    evaluation = run.evaluation
    scripts = {"script": run.script, "evaluation.script": evaluation.script if evaluation else ""}
    for field, script in scripts.items():
        if script and script not in archive.files:
            near = get_close_matches(script, archive.files, n=1)
            there = (path.parent / run.code / script).is_file()
            where = "an ignore file leaves it out" if there else "no such file"
            remedy = f"did you mean {near[0]!r}?" if near else "name a script of the code folder, relative to it"
            raise InputError(f"{path}: {field} = {script!r}: {where}; {remedy}")
    for field, module in {"module": run.module, "evaluation.module": evaluation.module if evaluation else ""}.items():
        if not module:
            continue
        place, package = module.replace(".", "/"), module.partition(".")[0]
        ours = any(name == f"{package}.py" or name.startswith(f"{package}/") for name in archive.files)
        if ours and not {f"{place}.py", f"{place}/__main__.py"} & {*archive.files}:
            raise InputError(f"{path}: {field} = {module!r}: no {place}.py in the code; name a module that is there")
    if run.checkpoint.path in archive.files:
        raise InputError(f"{path}: checkpoint.path = {run.checkpoint.path!r}: is a file of the code; name a folder")


def _say_left_out(names: tuple[str, ...]) -> None:
    if not names:
        return
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    click.echo(
        f"not in the code, because an ignore file names them: {harmless(', '.join(names[:_NAMED]))}{more}; if the "
        "script reads them beside itself, take them along with !NAME in .argosyignore",
        err=True,
    )


def _say_alone(run: TrainingRun, code: Path) -> None:
    """Nothing else would say it: each rank prints the same steps, and the run succeeds."""
    from argosy.workflows.script.alone import told, trains_alone
    from argosy.workflows.script.source import read_source

    place = run.module.replace(".", "/")
    files = [run.script] if run.script else [f"{place}.py", f"{place}/__main__.py"]
    script = next((name for name in files if (code / name).is_file()), "")
    if script and run.gang.world_size > 1 and run.gang.launcher != "ray":
        with suppress(InputError):  # what cannot be read, Python will refuse
            if trains_alone(read_source(code / script, [code])):
                click.echo(f"warning: {script} {told(run.gang.world_size)}", err=True)


def is_toml(path: Path) -> bool:
    """Whether the file is a run's description by its name.

    Raises:
        InputError: it is neither ``.toml`` nor ``.yaml``, ``.yml`` nor ``.json``.
    """
    suffix = path.suffix.lower()
    if suffix == ".toml":
        return True
    if suffix in (".yaml", ".yml", ".json"):
        return False
    if path.is_dir():
        raise InputError(f"FILE {path}: is a folder; name the file in it, for example {path / 'run.toml'}")
    raise InputError(f"FILE {path}: neither a run (.toml) nor a workflow (.yaml); write one with: argosy init train.py")


def from_toml(path: Path, ranks: tuple[int, int] | None, kind: Kind = "Workflow") -> Source:
    """Read, pack the code and compile.

    Raises:
        InputError: the file, a field, or the code folder is wrong.
    """
    from argosy.workflows.spec.load import load_run

    read_bytes(path)
    run = load_run(path)
    return compiled(run if ranks is None else with_ranks(run, *ranks), path, kind)


def compiled(run: TrainingRun, path: Path, kind: Kind = "Workflow") -> Source:
    """The run's code packed, and its workflow; ``path`` is its file, or the one that it could stand in.

    Raises:
        InputError: the code folder, or a script or module in it, is wrong.
    """
    from argosy.workflows.code import pack
    from argosy.workflows.compile import compile_run
    from argosy.workflows.no_code import written_while_running

    code = path.parent / run.code
    archive = pack(code, written_while_running(run, code)) if run.code else None
    if archive is not None:
        _check_entries(run, archive, path)
        _say_left_out(archive.left_out)
        _say_alone(run, code)
    data = compile_run(run, code=archive, kind=kind)
    return Source(path, data, read_workflow(data), run, archive)


def with_trigger(source: Source) -> Source:
    """A WorkflowTemplate and, behind it, all that starts it; of the accounts only the names.

    Raises:
        InputError: the run has no trigger.
    """
    from argosy.workflows.trigger.argo_events import argo_events_documents
    from argosy.workflows.trigger.deciding import deciding_documents
    from argosy.workflows.yaml_text import to_yaml

    assert source.run is not None
    documents = [*deciding_documents(source.run), *argo_events_documents(source.run)]
    return replace(source, yaml=source.yaml + "".join(f"---\n{to_yaml(each)}" for each in documents).encode())


def with_ranks(run: TrainingRun, nodes: int, each: int) -> TrainingRun:
    """The same run on ``nodes`` nodes with ``each`` ranks, without GPUs.

    Raises:
        InputError: another field of the run does not allow that shape.
    """
    from argosy.workflows.spec.run import TrainingRun

    values = run.model_dump(exclude_unset=True)
    gang = {**values.get("gang", {}), "nnodes": nodes, "nproc_per_node": each}
    gang["resources"] = {**gang.get("resources", {}), "gpu": 0}
    # The other profiles describe adapters and GPUs that this shape does not have.
    if "fabric_profile" in gang or gang.get("fabric") not in ("tcp", "single-node" if nodes == 1 else "tcp"):
        gang = {name: value for name, value in gang.items() if not name.startswith("fabric")}
    values["gang"] = gang
    if "evaluation" in values and values["evaluation"].get("resources"):
        values["evaluation"]["resources"] = {**values["evaluation"]["resources"], "gpu": 0}
    return TrainingRun(**values)


def from_yaml(path: Path) -> Source:
    """Read a workflow; the engine's own check says what is wrong with it.

    Raises:
        InputError: it is no YAML, or the file holds no Workflow.
    """
    from argosy.workflows.engine.reading import read_documents
    from argosy.workflows.imports.source import IMPORTED

    data = read_bytes(path)
    again = typed("argosy", "compile", description_here(), "-o", path)
    try:
        documents = read_documents(data, str(path))
    except InputError as error:
        raise InputError(f"{error}; correct it; what compile wrote, this writes again: {again}") from error
    kinds = [str(document.get("kind", "nothing")) for document in documents]
    for document, kind in zip(documents, kinds, strict=True):
        if kind == "Workflow":
            return Source(path, data, document, None, None)
    if "WorkflowTemplate" in kinds:
        raise InputError(f"{path}: kind = WorkflowTemplate: nothing to run by itself; hand it over with --templates")
    if not kinds:
        raise InputError(f"{path}: kind: holds nothing, no Workflow; compile one with: {again}")
    # Never into this very file, which is somebody's manifest.
    remedy = f"compile one with: {typed('argosy', 'compile', description_here(), '-o', 'workflow.yaml')}"
    if set(kinds) & {*IMPORTED, "List"}:
        remedy = f"make a run of it with: {typed('argosy', 'import', path, '-o', 'run.toml')}"
    raise InputError(f"{path}: kind: holds {', '.join(kinds)}, no Workflow; {remedy}")


def write_yaml(source: Source, output: Path) -> None:
    """The YAML into a file.

    Raises:
        InputError: it cannot be written there, or the workflow was made of that very file.
    """
    code = (source.path.parent / (source.run.code if source.run is not None else "")).resolve()
    files = {source.path.resolve(), *(code / name for name in (source.archive.files if source.archive else ()))}
    if output.resolve() in files and not _is_workflow(output):
        raise InputError(f"--output {output}: the workflow is made of this file; name another, as workflow.yaml")
    write_whole(output, source.yaml)


def _is_workflow(path: Path) -> bool:
    """Whether it is one of ours, or empty still: by another name than .yaml it counts as code."""
    with path.open("rb") as there:
        head = there.read(4096)
    return not head or f"{RUN_NAME}:".encode() in head


def push_code(source: Source, state_dir: Path) -> str:
    """Write the code archive into the run's store, where it stays for good; returns its uri, "" without code.

    Of a store on a volume the folder that stands for it on this machine: pods know it by another path.
    """
    from argosy.steps.store.opening import PERSON_SECONDS, open_store
    from argosy.workflows.cluster.store import take_address
    from argosy.workflows.code import push

    take_address(source.document)
    if source.archive is None or source.run is None:
        return ""
    with mounted(claim_mounts(source.document, state_dir)):
        uri = source.run.storage.uri
        pushed = push(source.archive, open_store(uri, retry_seconds=PERSON_SECONDS), source.run.name)
        place = resolve_file_uri(unquote(urlsplit(uri).path)) if uri.startswith("file:") else None
        return pushed if place is None else Path(place).as_uri() + pushed.removeprefix(uri.rstrip("/"))
