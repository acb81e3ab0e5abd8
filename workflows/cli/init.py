"""``argosy init``: from the user's own script to a run.toml."""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import dataclass, field
from errno import ENOSPC
from pathlib import Path

import click

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.machine import gpus
from argosy.workflows.cli.options import as_json, output, ranks
from argosy.workflows.cli.output import emit, next_commands, typed
from argosy.workflows.cli.script_facts import ScriptFacts, fixed, read_script
from argosy.workflows.cli.trainer_facts import TrainerFacts

NAME_LENGTH = 40
KILLED = "watch it being killed and resumed"
USUAL_KILL_STEP = 50
PLAIN_STEMS = ("train", "main", "run", "pretrain", "finetune")
"""Names of scripts that say nothing; the folder's name says more."""


@dataclass
class Guess:
    """The fields of the run.toml so far, and why each was chosen."""

    lines: list[str] = field(default_factory=list)
    why: list[tuple[str, str]] = field(default_factory=list)

    def put(self, key: str, value: str | int | list[str], why: str) -> None:
        """Add ``key = value`` and its reason (none: self-evident)."""
        self.lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
        if why:
            self.why.append((self.lines[-1], why))


@click.command()
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@output("File to write. [default: run.toml]")
@click.option("--name", help="Name of the run. [default: from the script or its folder]")
@click.option("--opaque", metavar="FOLDER", help="Folder the script writes its checkpoints to.")
@click.option("--include", multiple=True, metavar="GLOB", help="Files in that folder that form a checkpoint; repeat.")
@click.option("--resume-arg", multiple=True, help="Added when something was restored ({newest}: its path); repeat.")
@ranks
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
    facts = read_script(script, args)
    path = output if output is not None else _default_output(script)
    guess = Guess()
    guess.put("name", _name(name, script), "" if name else "from the script's path; change it with --name")
    guess.put("script", _relative(script, path), "")
    if args:
        guess.put("args", list(args), "")
    _checkpoint(guess, facts, opaque, include, resume_arg, _gang(guess, facts, ranks))
    text = "\n".join(guess.lines) + "\n"
    _write(path, text, force)
    missing = [flag.name for flag in facts.flags if flag.required and not _among(flag.name, args)]
    if as_json:
        emit({"path": str(path), "toml": text, "why": dict(guess.why), "missing_args": missing})
        return
    _say(path, guess, missing)
    next_commands(
        [
            (typed("argosy", "run", path), "run it on this machine"),
            (typed("argosy", "run", path, "--inject", f"kill:rank=0@step={_halfway(facts)}"), KILLED),
            (typed("argosy", "compile", path, "-o", "workflow.yaml"), "the YAML that `argo submit` takes"),
        ]
    )


def _halfway(facts: ScriptFacts) -> int:
    """A step that the script reaches, and that lies behind a checkpoint or two."""
    return USUAL_KILL_STEP if facts.end is None else max(1, facts.end // 2)


def _among(flag: str, args: tuple[str, ...]) -> bool:
    return any(argument == flag or argument.startswith(f"{flag}=") for argument in args)


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
    here = gpus() if facts.cuda is not None else 0
    if ranks is not None:
        (nodes, each), why = ranks, ""
    elif facts.trainer is not None and not here and facts.trainer.library != "DeepSpeed":
        # It shares its devices out itself: more ranks than it was told of are an error there.
        nodes, each = 1, facts.trainer.devices or 1
        why = f"line {facts.trainer.line}: {facts.trainer.library} takes its ranks from torchrun; change it with -j NxP"
    elif facts.distributed is None:
        nodes, each, why = 1, 1, "the script uses neither DDP, FSDP nor deepspeed: one process"
    elif here:
        nodes, each, why = (
            1,
            here,
            f"line {facts.distributed[1]} uses {facts.distributed[0]}; this machine has {here} GPUs",
        )
    else:
        nodes, each, why = 2, 2, f"line {facts.distributed[1]} uses {facts.distributed[0]}; change it with -j NxP"
    guess.put("nnodes", nodes, "")
    guess.put("nproc_per_node", each, why)
    if here and ranks is None:
        guess.lines.append(f"resources = {{ gpu = {each} }}")
    return nodes, each


def _checkpoint(
    guess: Guess,
    facts: ScriptFacts,
    opaque: str | None,
    include: tuple[str, ...],
    resume_arg: tuple[str, ...],
    ranks: tuple[int, int],
) -> None:
    if opaque is None and facts.checkpointer is not None:
        guess.lines += ["", "[checkpoint]"]
        guess.put("mode", "checkpointer", f"line {facts.checkpointer} uses argosy.Checkpointer")
        return
    trainer = facts.trainer
    if trainer is not None and opaque is None and trainer.folder is None:
        raise InputError(
            f"SCRIPT: line {trainer.line}: {trainer.library} saves where only a run could tell; {trainer.remedy}"
        )
    folder, patterns, why = _saved(facts, opaque, include)
    guess.lines += ["", "[checkpoint]"]
    guess.put("mode", "opaque", "the script writes its own checkpoint files")
    guess.put("path", folder, why)
    if patterns:
        guess.put("include", patterns, "")
    if trainer is not None:
        _completeness(guess, trainer, ranks)
    arguments, because = _resume(facts, resume_arg, f"{folder}/{patterns[0] if patterns else '*'}")
    if arguments:
        guess.put("resume_args", arguments, because)
    else:
        guess.why.append(("no resume_args", because))


def _completeness(guess: Guess, trainer: TrainerFacts, ranks: tuple[int, int]) -> None:
    """When a checkpoint is whole: known for the files that the library writes."""
    nodes, each = ranks
    if trainer.expect and nodes * each > 1:
        guess.put("expect", list(trainer.expect), f"{trainer.library} writes such a file for each rank")
    if trainer.marker and nodes == 1:
        guess.put("marker", trainer.marker, f"{trainer.library} writes it last")
    if trainer.expect and nodes > 1:
        guess.put("writers", "every", "the ranks of each node write to a disk of their own")
        guess.put("reshard", "all", f"{trainer.library} reads files of the first node everywhere")


def _saved(facts: ScriptFacts, opaque: str | None, include: tuple[str, ...]) -> tuple[str, list[str], str]:
    if opaque is not None:
        if opaque.startswith("/") or ".." in opaque.split("/") or not opaque.strip() or not opaque.isprintable():
            raise InputError(f"--opaque {opaque!r}: name a folder below the one the script runs in, as in --opaque out")
        known = [each.pattern for each in fixed(facts.saves) if each.folder == str(Path(opaque))]
        usual = ["*.pt"] if facts.trainer is None else list(facts.trainer.include)
        return str(Path(opaque)), list(include) or known or usual, ""
    if facts.trainer is not None and facts.trainer.folder is not None:
        why = f"line {facts.trainer.line}: {facts.trainer.library} saves there"
        return facts.trainer.folder, list(include or facts.trainer.include), why
    usable = [each for each in fixed(facts.saves) if not each.folder.startswith(("/", ".."))]
    if not usable:
        lines = [
            *(f"line {each.line}: {each.folder}" for each in facts.saves),
            *(f"line {n}" for n in facts.unclear_saves),
        ]
        seen = (
            f"saves where only a run could tell ({', '.join(lines)})"
            if lines
            else "saves no checkpoint that can be seen"
        )
        raise InputError(
            f"SCRIPT: {seen}, so a killed run could not resume; name the folder with --opaque FOLDER "
            "(relative, as the script writes it), or use argosy.Checkpointer in the script"
        )
    first = usable[0]
    patterns = list(include) or [each.pattern for each in usable if each.folder == first.folder]
    return first.folder, patterns, f"line {first.line} saves there"


def _resume(facts: ScriptFacts, given: tuple[str, ...], checkpoint: str) -> tuple[list[str], str]:
    if given:
        return list(given), ""
    flag = facts.resume_flag()
    if flag is not None and not flag.takes_value:
        return [flag.name], f"line {flag.line} declares {flag.name}"
    if flag is not None and "*" not in checkpoint:
        return [flag.name, str(Path(checkpoint))], f"line {flag.line} declares {flag.name} with a value"
    if flag is not None:
        why = f"line {flag.line} declares {flag.name} with a value; {{newest}} stands for what was written last"
        return [flag.name, "{newest}"], why
    if (trainer := facts.trainer) is not None and trainer.resume_args:
        return list(trainer.resume_args), f"{trainer.library} is given it by the script's parser"
    if trainer is not None and trainer.resumes == "itself":
        return [], f"the script asks {trainer.library} for its newest checkpoint itself"
    if trainer is not None and not trainer.resumes:
        why = f"the script never tells {trainer.library} to go on, so every restart begins anew"
        return [], f"{why}; let it, and name the flag with --resume-arg"
    if facts.init_from is not None:
        return ["--init_from=resume"], f"line {facts.init_from} compares init_from with 'resume'"
    return [], "no --resume flag found: the script must look for its checkpoint itself; else name it with --resume-arg"


def _write(path: Path, text: str, force: bool) -> None:
    # Whole or not at all: on a full disk an empty file would be taken for a description.
    part = path.with_name(f".{path.name}.part")
    try:
        if path.exists() and not force:
            raise InputError(f"--output {path}: exists; overwrite it with --force or name another file with -o")
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        remedy = "free some" if error.errno == ENOSPC else "name a file in a folder that exists and is yours to write"
        raise InputError(f"--output {path}: {error.strerror}; {remedy}") from error


def _say(path: Path, guess: Guess, missing: list[str]) -> None:
    click.echo(f"wrote {path}:\n")
    click.echo("\n".join(f"  {line}".rstrip() for line in guess.lines))
    if guess.why:
        click.echo("\nWhy:")
    for line, why in guess.why:
        click.echo(f"  {line}: {why}")
    if missing:
        click.echo(f"\nThe script requires {', '.join(missing)}: add them to args.")
