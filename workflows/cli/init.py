"""``argosy init``: from the user's own script to a run.toml."""

from __future__ import annotations

import json
import os
import re
import shlex
from functools import cache
from pathlib import Path

import click

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.init_checkpoint import Guess, places, put_checkpoint
from argosy.workflows.cli.init_elsewhere import among, left_behind, with_words, words_inside
from argosy.workflows.cli.init_refused import tell_ways
from argosy.workflows.cli.init_restart import Read
from argosy.workflows.cli.machine import gpus
from argosy.workflows.cli.options import as_json, output, ranks_meaning
from argosy.workflows.cli.output import emit, next_commands, typed
from argosy.workflows.cli.written import write_whole
from argosy.workflows.script.alone import told
from argosy.workflows.script.data import DataFacts, dataset_uri
from argosy.workflows.script.facts import ScriptFacts
from argosy.workflows.script.flags import Flag
from argosy.workflows.script.places import SavedAt
from argosy.workflows.script.reading import read_script
from argosy.workflows.script.settings import RUN_DIR
from argosy.workflows.script.trainer import RAY_TRAIN

NAME_LENGTH = 40
OUT = "out"
"""The folder that a variable names, where the script has none."""
KILLED = "watch it being killed and resumed"
OF_JAX = (
    "initialize(f\"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}\", int(os.environ['WORLD_SIZE']), "
    "int(os.environ['RANK']))"
)
LOCAL_RANK = r"$\{local_rank}"
"""What torchrun replaces in the arguments of each rank, as torch.distributed.launch did; ours stand without the $."""
OF_TORCHRUN = ("local_rank", "rank", "world_size")
"""What its ranks are told without being asked."""
PLAIN_STEMS = ("train", "main", "__main__", "run", "pretrain", "finetune")
"""Names of scripts that say nothing; the folder's name says more."""


@click.command()
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@output("File to write. [default: run.toml]")
@click.option("--name", help="Name of the run. [default: from the script or its folder]")
@click.option("--opaque", metavar="FOLDER", help="Folder the script writes its checkpoints to.")
@click.option("--include", multiple=True, metavar="GLOB", help="Files in that folder that form a checkpoint; repeat.")
@click.option(
    "--resume-arg",
    multiple=True,
    help="Added when something was restored ({newest}: its path, {step}: its number); repeat.",
)
@click.option("--dataset", default="", metavar="URI|FOLDER", help="The training data, s3://bucket/prefix or a folder.")
@ranks_meaning("N nodes with P ranks each, without GPUs. [default: from the script and this machine]")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@as_json
def command(
    script: Path,
    args: tuple[str, ...],
    output: Path | None,
    name: str | None,
    opaque: str | None,
    include: tuple[str, ...],
    resume_arg: tuple[str, ...],
    dataset: str,
    ranks: tuple[int, int] | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write run.toml for your own training script.

    Reads SCRIPT (it is never run) and guesses where its checkpoints go, how it resumes and how many ranks it
    can use; says why. ARGS after -- are the script's own.

    \b
    Example:
      argosy init train.py -- --steps 2000
      argosy init train.py --opaque out --include 'ckpt_*.pt' --resume-arg=--resume
    """
    named = () if opaque is None else tuple(SavedAt(opaque, each, "--opaque") for each in include or ("*",))
    facts, args, environ = _read(script, given := args, named)
    path = output if output is not None else _default_output(script)
    guess = Guess()
    guess.put("name", _name(name, script), "" if name else "from the script's path; change it with --name")
    relative = _relative(script, path)
    if facts.started == "module":
        module = relative.removesuffix(".py").replace("/", ".")
        guess.put("module", module, "it imports from the package that it lies in")
    else:
        guess.put("script", relative, "")
    here = path.resolve().parent == Path.cwd()
    environ |= {"PYTHONPATH": facts.started} if facts.started not in ("", "module") and here else {}
    uri = dataset_uri(dataset, facts.data, args)
    args = _arguments(guess, facts.data, args, uri, environ)
    if facts.stays:
        guess.why.append((f"{RUN_DIR}=.", f"{facts.stays}: Hydra gives each start a folder of its own otherwise"))
    if uri:
        guess.lines.append(f"dataset = {{ uri = {json.dumps(uri, ensure_ascii=False)} }}")
        if not dataset:
            guess.why.append((guess.lines[-1], "the script is told of this folder now"))
    again = _again(script, given, named)
    try:
        put_checkpoint(guess, facts, opaque, include, resume_arg, _gang(guess, facts, ranks), again)
    except InputError as error:
        # What knows the facts does not know the file: its command is to be copied, not completed.
        told = re.sub(r"(?<![$\w])SCRIPT\b", lambda _: shlex.quote(str(script)), str(error))
        more = () if opaque else _told_more(facts, again)
        raise InputError(with_words(told, str(script), given, more)) from error
    guess.why += left_behind(facts.modules, path.resolve().parent)
    text = "\n".join(guess.lines) + "\n"
    _check(text, path)
    _write(path, text, force)
    required = (flag for flag in facts.flags if flag.required and flag.attribute not in OF_TORCHRUN)
    missing = [flag.name for flag in required if not among(flag, args, facts.flags)]
    if as_json:
        emit({"path": str(path), "toml": text, "why": dict(guess.why), "missing_args": missing})
        return
    _say(path, guess, missing)
    next_commands(
        [
            (typed("argosy", "run", path), "run it on this machine"),
            _halfway(path, facts),
            (typed("argosy", "compile", path, "-o", "workflow.yaml"), "the YAML that `argo submit` takes"),
        ]
    )


def _told_more(facts: ScriptFacts, again: Read) -> tuple[str, ...]:
    """What a refusal is followed by: what may make it go on, and the words with which it saves where all is kept."""
    tell_ways(facts)
    return words_inside(facts, again)


def _again(script: Path, given: tuple[str, ...], named: tuple[SavedAt, ...]) -> Read:
    return cache(lambda words: _read(script, (*given, *words), named)[0])


def _read(
    script: Path, args: tuple[str, ...], named: tuple[SavedAt, ...]
) -> tuple[ScriptFacts, tuple[str, ...], dict[str, str]]:
    """What the script shows; its arguments with those that it needs; the variables that say where it writes."""
    facts, environ = read_script(script, args, [Path.cwd()], named=named), dict[str, str]()
    if facts.launcher is not None:
        args = (facts.launcher.name, "pytorch", *args)
        facts = read_script(script, args, [Path.cwd()], named=named)
    if facts.variables and not named and facts.trainer is None and not places(facts):
        variable = {facts.variables[0]: OUT}
        found = read_script(script, args, [Path.cwd()], variable)
        facts, environ = (found, variable) if places(found) else (facts, environ)
    if facts.launched is not None and _is_told_by_args(facts.launched[1]) and not among(facts.launched[1], args):
        flag = facts.launched[1]
        name = next((each for each in flag.aliases if "local" in each), flag.name)
        args = (f"{name}={LOCAL_RANK}", *args)
    args = args or (facts.trainer.args if facts.trainer else ())
    return facts, (*args, f"{RUN_DIR}=.") if facts.stays else args, environ


def _arguments(
    guess: Guess, data: DataFacts | None, args: tuple[str, ...], uri: str, environ: dict[str, str]
) -> tuple[str, ...]:
    """Write ``args`` and ``env``, with {data} where the script reads its data from; the arguments."""
    if uri and data is not None:
        args = data.filled(args)
    why = "" if data is None else f"{data.where} reads {data.name}"
    filled = f"{why}; {{data}} stands for the folder with the data on each node"
    if args:
        told = [filled] if any("{data}" in text for text in args) else []
        told += ["torchrun gives each rank its number there"] if any(LOCAL_RANK in text for text in args) else []
        guess.put("args", list(args), "; ".join(told))
    if uri and data is None:
        guess.why.append(("[dataset]", "the script finds the folder in $ARGOSY_DATA_PATH"))
    elif uri and data is not None and data.variable:
        environ = {**environ, data.name: "{data}"}
    elif data is not None and not uri:
        guess.why.append(("no [dataset]", f"{why}; with --dataset URI argosy brings the data to each node"))
    if environ:
        guess.lines.append(f"env = {{ {', '.join(f'{name} = {json.dumps(text)}' for name, text in environ.items())} }}")
        reason = "it says where the script writes" if OUT in environ.values() else ""
        reason = reason or ("the script imports what lies there" if "PYTHONPATH" in environ else "")
        reasons = (reason, filled if "{data}" in environ.values() else "")
        guess.why.append((guess.lines[-1], "; ".join(filter(None, reasons))))
    return args


def _halfway(path: Path, facts: ScriptFacts) -> tuple[str, str]:
    """A kill at a step that the script reaches, if that is known, and that lies behind a checkpoint or two."""
    step, unless = (50, ", if it takes so many steps") if facts.end is None else (max(1, facts.end // 2), "")
    return typed("argosy", "run", path, "--inject", f"kill:rank=0@step={step}"), KILLED + unless


def _is_told_by_args(flag: Flag) -> bool:
    return flag.name.startswith("-")


def _default_output(script: Path) -> Path:
    inside = script.resolve().is_relative_to(Path.cwd())
    return Path("run.toml") if inside else script.parent / "run.toml"


def _relative(script: Path, output: Path) -> str:
    relative = os.path.relpath(script.resolve(), output.parent.resolve())
    if relative.startswith(".."):
        raise InputError(
            f"--output {output}: the folder of run.toml is what travels as code, and {script} is not in it; "
            "write run.toml into a folder above the script"
        )
    return Path(relative).as_posix()


def _name(name: str | None, script: Path) -> str:
    if name is not None:
        if len(name) > NAME_LENGTH or not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name):
            raise InputError(f"--name {name!r}: use a-z, 0-9 and '-', beginning with a letter, at most {NAME_LENGTH}")
        return name
    plain = script.stem in PLAIN_STEMS
    stem = script.resolve().parent.name if plain else script.stem
    slug = re.sub(r"[^a-z0-9]+", "-", stem.lower())[:NAME_LENGTH].strip("-")
    return slug if slug[:1].isalpha() else f"train-{slug}"[:NAME_LENGTH].strip("-")


def _gang(guess: Guess, facts: ScriptFacts, ranks: tuple[int, int] | None) -> tuple[int, int]:
    guess.lines += ["", "[gang]"]
    under_ray = facts.trainer is not None and facts.trainer.library == RAY_TRAIN
    here = gpus() if facts.ranks.cuda is not None or under_ray else 0
    if ranks is not None:
        (nodes, each), why = ranks, ""
        if facts.alone and nodes * each > 1:
            why = f"the script {told(nodes * each)}"
    elif under_ray:
        nodes, each, why = 1, 1, "Ray starts as many workers as the script's ScalingConfig says; more nodes by -j Nx1"
    elif facts.launched and not _is_told_by_args(facts.launched[1]):
        nodes, each = 1, 1
        why = "takes its rank from --local_rank, which torchrun does not give: let it read $LOCAL_RANK"
        why = f"{facts.launched[0]} {why}"
    elif facts.own_ranks[0]:
        nodes, each, why = 1, facts.own_ranks[1], f"{facts.own_ranks[0]}: the script starts and counts its ranks itself"
    elif facts.trainer is not None and not here and facts.trainer.library not in ("DeepSpeed", "megatron"):
        # It shares its devices out itself: more ranks than it was told of are an error there.
        nodes, each = 1, facts.trainer.devices or 1
        why = f"{facts.trainer.where}: {facts.trainer.library} takes its ranks from torchrun; change it with -j NxP"
    elif facts.ranks.by is None:
        why = facts.ranks.only or "the script uses neither DDP, FSDP nor deepspeed"
        nodes, each, why = 1, 1, f"{why}: one process"
    elif facts.ranks.by[0] == "Fabric":
        nodes, each = facts.ranks.told[0] or 1, facts.ranks.told[1] or here or 1
        why = f"{facts.ranks.by[1]} uses Fabric, which takes as many ranks as its devices say; change it with -j NxP"
    elif facts.ranks.plain:
        nodes, each, why = 2, 1, f"{facts.ranks.by[1]} uses {facts.ranks.by[0]}: a process for all devices of a node"
        why = f"{why}; let it say {OF_JAX} there, or else it meets nobody" if facts.ranks.unmet else why
    else:
        known = facts.ranks.size or here
        nodes, each = (1, known) if known else (1 if facts.ranks.node else 2, 2)
        why = f"this machine has {here} GPUs" if here else "change it with -j NxP"
        why = "it says for how many it waits" if facts.ranks.size else why
        why = f"{facts.ranks.by[1]} uses {facts.ranks.by[0]}; {why}"
        why += f"; {facts.ranks.node}: one node only" if facts.ranks.node else ""
    guess.put("nnodes", nodes, "")
    guess.put("nproc_per_node", each, why)
    if under_ray and facts.trainer is not None:
        guess.put("launcher", "ray", f"{facts.trainer.where} makes a trainer of Ray Train")
    elif facts.ranks.mpi:
        guess.put("launcher", "mpirun", f"{facts.ranks.mpi} asks MPI which rank it is; the image needs Open MPI")
    elif facts.ranks.plain:
        guess.put("launcher", "plain", f"the script uses {facts.ranks.plain} and no torch, with which torchrun comes")
    if here and ranks is None:
        guess.lines.append(f"resources = {{ gpu = {here} }}")
    return nodes, each


def _check(text: str, path: Path) -> None:
    """What run would refuse is not written."""
    from argosy.workflows.spec.load import parse_run

    parse_run(text, str(path))


def _write(path: Path, text: str, force: bool) -> None:
    if path.exists() and not force:
        raise InputError(f"--output {path}: exists; overwrite it with --force or name another file with -o")
    # Whole or not at all: on a full disk an empty file would be taken for a description.
    write_whole(path, text.encode())


def _say(path: Path, guess: Guess, missing: list[str]) -> None:
    click.echo(f"wrote {path}:\n")
    click.echo("\n".join(f"  {line}".rstrip() for line in guess.lines))
    if guess.why:
        click.echo("\nWhy:")
    for line, why in guess.why:
        click.echo(f"  {line}: {why}")
    if missing:
        click.echo(f"\nThe script requires {', '.join(missing)}: add them to args.")
