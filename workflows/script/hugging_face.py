"""How a script saves that leaves it to Hugging Face's Trainer, and how it goes on."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from argosy.workflows.script.source import Function, Source, argument, last_name
from argosy.workflows.script.trainer import TrainerFacts, certain, resumes_by, started, surely
from argosy.workflows.script.values import Values

PARSERS = ("HfArgumentParser", "TrlParser", "H4ArgumentParser")
_PARSED = re.compile(r"(?<!Data)TrainingArguments\b")


def transformers(source: Source, values: Values) -> TrainerFacts | None:
    """What the script's calls say; None where no Trainer of its saves."""
    calls = surely(source, values)
    trainers = [call for call in calls if last_name(call.func).endswith("Trainer")]
    trainer = next((call for call in trainers if not _is_rays(call, source)), next(iter(trainers), None))
    settings = next((call for call in calls if last_name(call.func).endswith(("TrainingArguments", "SFTConfig"))), None)
    parser = next((call for call in calls if last_name(call.func) in PARSERS), None)
    if parser is not None and _PARSED.search(ast.unparse(parser)):
        settings = None  # made by the parser; what else the modules make of them is another's
    if trainer is None or (settings is None and parser is None):
        return None
    place = argument(settings, "output_dir", 0) if settings is not None else None
    told = values.conditions.flag("output_dir") if parser is not None else None
    folder = told or (None if place is None else certain(values, place))
    # Before transformers 4 it was called model_path.
    ways = (resumes_by(calls, "train", name, values) for name in ("resume_from_checkpoint", "model_path"))
    goes_on = next(filter(None, ways), "")
    own = next((source.where(each) for kind in values.bindings.classes.get(last_name(trainer.func), [])
                for each in kind.body if isinstance(each, Function) and each.name == "_save_checkpoint"
                and not re.search(r"\._save_checkpoint\(", ast.unparse(each))), "")  # fmt: skip
    declared = settings is None and parser is not None and goes_on == "variable"
    # Ray's is made around one that no call shows.
    name = "Trainer" if _is_rays(trainer, source) else last_name(trainer.func)
    ways_on = _flags_of_train(calls, values, place)
    if own:
        say = "".join(f" --resume-arg={each} --resume-arg={folder or 'FOLDER'}" for each in ways_on[:1])
        return TrainerFacts(
            library=f"transformers.{name}",
            where=own,
            folder=None,
            lacks="saves by a _save_checkpoint of the script's own, which only a run could tell",
            remedy="name the folder and what is a checkpoint there, as in `argosy init SCRIPT "
            f"--opaque {folder or 'FOLDER'} --include GLOB{say}`",
        )
    return TrainerFacts(
        library=f"transformers.{name}",
        where=source.where(settings or trainer),
        folder=folder,
        remedy=_remedy(source.where(settings or trainer), place if parser is None else None, values),
        # Everything in its folder: the final model lies beside the checkpoints.
        include_here=("checkpoint-*/**/*",),
        expect=("rng_state_{rank}.pth",),
        marker="trainer_state.json",
        resume_args=_words(source, values) if declared else (),
        resume_flags=ways_on,
        resumes=goes_on,
        start=started(calls, source, "train", "resume_from_checkpoint", f"get_last_checkpoint({folder!r})")
        + "; from transformers.trainer_utils import get_last_checkpoint at its top",
    )


def _is_rays(trainer: ast.Call, source: Source) -> bool:
    return source.origin(trainer.func).startswith("ray.")


def _remedy(where: str, place: ast.expr | None, values: Values) -> str:
    """What to do where its folder cannot be read; ``place``: what the script itself gives, which no flag says."""
    if isinstance(place, ast.Name) and values.flag("output_dir") is None:
        return f"give all starts one: write `{place.id} = 'out'` before {where}, and call argosy init again"
    return "say where, as in `argosy init SCRIPT -- --output_dir out`, or name the folder with --opaque FOLDER"


def _words(source: Source, values: Values) -> tuple[str, ...]:
    """What gives its setting a value: words with ``=`` where a file of settings is named, and they change it."""
    file = "".join(values.machine.arguments[:1]).endswith((".yaml", ".yml", ".json"))
    words = file and any(last_name(call.func) == "from_cli" for call in source.calls)
    return ("resume_from_checkpoint={newest}",) if words else ("--resume_from_checkpoint", "{newest}")


def _flags_of_train(calls: Sequence[ast.Call], values: Values, place: ast.expr | None) -> tuple[str, ...]:
    """The flags with the path that ``train(resume_from_checkpoint=...)`` is given; that of ``place`` is looked in."""
    given = [argument(call, name) for call in calls if last_name(call.func) == "train"
             for name in ("resume_from_checkpoint", "model_path")]  # fmt: skip
    named = [name for name in _named(given, values) if name not in _named([place], values)]
    return tuple(
        dict.fromkeys(flag.name for name in named if (flag := values.flag(name)) is not None and flag.takes_value)
    )


def _named(given: Sequence[ast.expr | None], values: Values) -> list[str]:
    shown = [one for each in given if each is not None for one in (each, *values.bindings.origins(each))]
    return [node.attr for each in shown for node in ast.walk(each) if isinstance(node, ast.Attribute)]
