"""What is decided before a run starts: its parameters, whether an event starts it, whether this machine can."""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.injection import Injection, check_gang
from argosy.steps.contract.layout import RUN_ID_RULE, is_run_id
from argosy.steps.contract.placeholders import VARIABLES, named
from argosy.steps.paths import mounted
from argosy.steps.record.wording import count, size
from argosy.workflows.cli.described import description_here
from argosy.workflows.cli.document import claim_mounts, gpu_requests, parameters
from argosy.workflows.cli.machine import gpus
from argosy.workflows.cli.output import typed
from argosy.workflows.cli.run_folder import running_as
from argosy.workflows.cli.source import Source
from argosy.workflows.code import CodeArchive
from argosy.workflows.spec.refusal import suggestion

ONCE = "once"
"""Event id of a manual start that is to be deduplicated like an event."""
LONGEST = 128 << 10
"""Characters of one parameter: the kernel takes no longer argument (MAX_ARG_STRLEN)."""

LEAST_OF_NODE, LEAST_OF_RANK, LEAST_WITH_TORCH = 20 << 20, 16 << 20, 128 << 20
"""Bytes that a node's launch takes, a rank that is a Python only, and one that has imported torch."""


def checked_name(name: str) -> str:
    """A workflow's name as Kubernetes takes it, or "".

    Raises:
        InputError: it is none.
    """
    if name and not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
        raise InputError(f"--name {name!r}: no workflow's name; use at most 63 lower-case letters, digits and '-'")
    return name


def read_parameters(source: Source, given: Sequence[str], named: dict[str, str]) -> dict[str, str]:
    """``-p key=value`` and the parameters that have flags of their own (``named``; empty values are left out).

    Raises:
        InputError: no ``=``, an unknown parameter, one given twice, or a value that its step would refuse.
    """
    known = parameters(source.document)
    found = {key: value for key, value in named.items() if value}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"-p {text!r}: no key=value; write for example -p resume-from=none")
        if key in found:
            raise InputError(f"-p {key}: given twice; leave one of them out")
        found[key] = value
    for key, value in found.items():
        if key not in known:
            listed = ", ".join(known) or "none"
            raise InputError(f"-p {key}: the workflow has no such parameter; it has {listed}")
        _check(key, value, source)
    return found


def _check(key: str, value: str, source: Source) -> None:
    if "\0" in value or len(value) > LONGEST:
        raise InputError(f"-p {key}: {len(value)} characters; a value is text without NUL, shorter than {LONGEST}")
    if "{{" in value or "}}" in value:
        raise InputError(f"-p {key}: holds {{{{ or }}}}, which Argo would take for a placeholder; leave them out")
    if not all(letter.isprintable() or letter in "\t\n\r" for letter in value):
        raise InputError(f"-p {key}: holds control characters, with which Argo cannot read its template; remove them")
    if key == "args":
        try:
            listed = json.loads(value)
        except (ValueError, RecursionError):
            listed = None
        if not isinstance(listed, list) or not all(isinstance(item, str) and "\0" not in item for item in listed):
            raise InputError(
                f'-p args={value!r}: no JSON list of texts; write for example -p \'args=["--steps", "10"]\''
            )
        absent = _absent(source)
        for word in (word for item in listed for word in named(item)):
            if word in absent:
                raise InputError(f"-p args={value!r}: {{{word}}} has no value in this run; {absent[word]}")
            if word not in VARIABLES:
                remedy = f"{suggestion(word, [*VARIABLES], 'words')}; a backslash before the brace keeps it as it is"
                raise InputError(f"-p args={value!r}: {{{word}}} stands for nothing; {remedy}")
    if key == "force" and value not in ("true", "false"):
        raise InputError(f"-p force={value!r}: neither true nor false; write --force")
    if key == "resume-from" and value not in ("latest", "none") and not _is_digest(value):
        raise InputError(
            f"resume-from = {value!r}: write latest, none, or the 64 hex digits of a checkpoint's digest "
            "(argosy checkpoint list RUN --json)"
        )
    if key == "run-id" and not is_run_id(value):
        raise InputError(f"run-id = {value!r}: {RUN_ID_RULE}")
    if key == "dataset-uri":
        from argosy.steps.store.opening import check_uri

        check_uri(value, "dataset-uri")
        if "@" in urlsplit(value).netloc:
            raise InputError(
                "dataset-uri: holds user or password (not shown), which everybody could read; leave them out"
            )


def _absent(source: Source) -> dict[str, str]:
    """Words in braces that its run has no value for, and what to do; of a compiled one nobody knows."""
    if source.run is None:
        return {}
    from argosy.workflows.spec.placeholders import absent_in_training

    return absent_in_training(source.run)


def _is_digest(text: str) -> bool:
    return len(text) == 64 and all(letter in "0123456789abcdef" for letter in text)


def read_event(source: Source, path: Path) -> tuple[bool, str, dict[str, str]]:
    """Whether the event in a file concerns the run, why, and the parameters it sets.

    Raises:
        InputError: the file cannot be read, is no notification, or the run has no dataset.
    """
    from argosy.steps.events.matching import MARKERS, start_reason
    from argosy.steps.events.payload import parse_events
    from argosy.workflows.cli.source import read_bytes

    if not path.exists():
        raise InputError(f"--event {path}: no such file; name the file that holds the notification")
    known = parameters(source.document)
    events = parse_events(read_bytes(path), f"--event {path}")
    uri = known.get("dataset-uri", "")
    if not uri:
        raise InputError(
            f"--event {path}: the run has no [dataset], so no event can start it; add one or leave --event out"
        )
    own = source.run.trigger.marker if source.run is not None and source.run.trigger is not None else ()
    decision = start_reason(uri, events, markers=own or MARKERS)
    return decision.start, decision.reason, {"event": decision.event_id, "dataset-uri": decision.dataset_uri}


def check_not_running(source: Source, parameters: Mapping[str, str], state_dir: Path) -> None:
    """A second training of one run id would fence the first: that is nobody's wish unless it is said (--force).

    Raises:
        InputError: it runs on this machine now.
    """
    run_id = parameters.get("run-id", "")
    if not run_id or not source.run_name or parameters.get("force") == "true":
        return
    for folder in running_as(state_dir, source.run_name, run_id):
        ways = f"wait for it ({folder.command('status', folder.name)}), stop it ({folder.command('stop', folder.name)})"
        raise InputError(f"run-id = {run_id!r}: {folder.name} trains it now; {ways}, or take it over with --force")


def check_faults(source: Source, faults: Sequence[Injection]) -> None:
    """Say before anything starts that a fault cannot happen in this run.

    Raises:
        InputError: the gang has no such rank or node, or an exit is asked of a script that knows nothing of argosy.
    """
    if source.run is None:
        return
    gang, archive = source.run.gang, source.archive
    for fault in faults:
        if isinstance(gang.nnodes, int):  # an elastic one has as many as there are
            check_gang(fault, gang.nnodes, gang.nproc_per_node, gang.spares)
        if fault.fault == "exit" and archive is not None and source.run.script in archive.files and _mute(archive):
            rule = "a rank exits in its own call of argosy.report, and no Python file of the code names argosy"
            raise InputError(
                f"inject = {fault.text!r}: {rule}; use kill or term, or let the script call argosy.report(step)"
            )


def _mute(archive: CodeArchive) -> bool:
    with tarfile.open(fileobj=io.BytesIO(archive.data)) as files:
        programs = (files.extractfile(each) for each in files if each.isfile() and each.name.endswith(".py"))
        return not any(b"argosy" in program.read() for program in programs if program is not None)


def check_gpus(source: Source) -> None:
    """Say before anything starts that the GPUs a run asks for are not here, or no memory for so many ranks.

    Raises:
        InputError: they are not; names the ways on.
    """
    _check_ranks(source)
    wanted = gpu_requests(source.document)
    here = gpus() if wanted else 0
    if here >= wanted:
        return
    shape = ""
    if source.run is not None:
        gang = source.run.gang
        field = "gang.resources.gpu" if gang.resources.gpu == wanted else "evaluation.resources.gpu"
        shape = f"{source.path}: {field} = {wanted}"
    else:
        shape = f"{source.path}: nvidia.com/gpu = {wanted}"
    have = f"{here} GPUs" if here else "no GPU"
    toml = source.path if source.run is not None and source.path.suffix else description_here()
    cpu = typed("argosy", "run", toml, "-j", "2x1")
    submit = typed("argosy", "compile", toml, "-o", "workflow.yaml", "--push")
    raise InputError(
        f"{shape}: this machine has {have}. Ways on: `{cpu}` (2 nodes with 1 rank each on the CPU; the script must "
        f"choose gloo without CUDA), or `{submit} && argo submit workflow.yaml` (a cluster)"
    )


def _check_ranks(source: Source) -> None:
    """Each rank is a process: too many of them would be started for minutes, until the machine stops."""
    if source.run is None:
        return
    gang = source.run.gang
    nodes, ranks = gang.min_nnodes + gang.spares, gang.min_nnodes * gang.nproc_per_node
    # A rank that is the fork of a process with torch shares that.
    of_rank = LEAST_WITH_TORCH if gang.launcher == "torchrun" and not gang.preload else LEAST_OF_RANK
    wanted, memory = nodes * LEAST_OF_NODE + ranks * of_rank, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if wanted > memory:
        shape = f"{count(gang.min_nnodes, 'node')} with {count(gang.nproc_per_node, 'rank')} each"
        cost = f"{LEAST_OF_NODE >> 20} MiB a node, {of_rank >> 20} MiB a rank"
        raise InputError(
            f"{source.path}: {shape} take {size(wanted)} at least ({cost}), and this machine has {size(memory)}; run "
            "fewer here (-j NxP, from Python ranks=(N, P)), or all of them on a cluster"
        )


def _check_script(source: Source, state_dir: Path) -> None:
    """Pods of this machine have its files and volumes, and a folder of their own in place of the image's."""
    run = source.run
    if run is None or run.code or not run.script:
        return
    on_volume = mounted(run.working_dir, claim_mounts(source.document, state_dir)) is not None
    if not (os.path.isfile(run.script) if os.path.isabs(run.script) else on_volume):
        raise InputError(
            f"{source.path}: script = {run.script!r}, code = '': the script is in the image, which no run on one "
            "machine uses; write code = the folder that has it here, or run it on a cluster with: "
            f"{typed('argosy', 'submit', source.path)}"
        )


def check_code(source: Source, state_dir: Path) -> None:
    """Say before anything starts that the code a compiled workflow names is not in its store, or only in an image.

    Raises:
        InputError: it is not there; names the command that puts it there.
    """
    _check_script(source, state_dir)
    from argosy.steps.contract.layout import code_key
    from argosy.workflows.cli.run_folder import open_embedded

    digests = code_digests(source)
    if source.run is not None or not source.store_uri or not digests:
        return
    store = open_embedded(source.store_uri, source.document, state_dir)
    for digest in digests:
        if store.head(code_key(source.run_name, digest)) is None:
            raise InputError(
                f"{source.path}: code-digest = {digest[:12]}…: no such code archive in {source.store_uri} here; put it "
                f"there with: {typed('argosy', 'compile', description_here(), '-o', source.path, '--push')}"
            )


def code_digests(source: Source) -> list[str]:
    """Digests of the code archives that a compiled workflow names."""
    return code_digests_in(source.yaml)


def code_digests_in(yaml: bytes) -> list[str]:
    """The same of its bytes."""
    marker = b"--code-digest="
    found = {part[:64].decode("ascii", "replace") for part in yaml.split(marker)[1:]}
    return sorted(digest for digest in found if _is_digest(digest))
