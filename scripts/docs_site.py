"""The pages of ``make docs``: those of docs/, and a reference written from the code. Usage: docs_site.py FOLDER."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import click
from pydantic import BaseModel

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.workflows.cli.main import VERBS, cli
from argosy.workflows.lint.page import page
from argosy.workflows.lint.rule import RULES
from argosy.workflows.lint.rules import load
from argosy.workflows.spec.explain import default_words, type_words
from argosy.workflows.spec.refusal import table_model
from argosy.workflows.spec.run import TrainingRun

DOCS = Path(__file__).resolve().parents[1] / "docs"


def write(folder: Path) -> None:
    """Make ``folder`` anew."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder)
    reference = folder / "reference"
    (reference / "rules").mkdir(parents=True)
    (reference / "fields.md").write_text("# Fields of run.toml\n\n" + "\n".join(fields(TrainingRun, "")))
    (reference / "verbs.md").write_text("# Verbs\n\n" + "\n".join(verbs()))
    (reference / "causes.md").write_text("# Causes\n\n" + "\n".join(causes()))
    load()
    (reference / "rules.md").write_text("# Rules of lint\n\n" + "\n".join(rules()))
    for family, names in groupby(sorted(RULES), key=lambda name: RULES[name].family):
        text = "\n\n".join(rule(name) for name in names)
        (reference / "rules" / f"{family}.md").write_text(f"# Rules {family}\n\n{text}")


def fields(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """A table per model, tables within it after it."""
    first = (model.__doc__ or "").strip().splitlines()[0]
    yield f"## {f'`[{prefix[:-1]}]`' if prefix else 'The run'}\n\n{first}\n"
    yield "| field | type | default | |\n|---|---|---|---|"
    inner = {name: found for name, info in model.model_fields.items() if (found := table_model(info.annotation))}
    for name, info in model.model_fields.items():
        if name not in inner:
            words = [f"`{name}`", type_words(info), f"`{default_words(info)}`", info.description or ""]
            yield "| " + " | ".join(each.replace("|", "\\|") for each in words) + " |"
    yield ""
    for name, found in inner.items():
        yield from fields(found, f"{prefix}{name}.")


def verbs() -> Iterator[str]:
    """Each verb's ``--help``."""
    context = click.Context(cli, info_name="argosy")
    for name in VERBS:
        command = cli.get_command(context, name)
        assert command is not None
        yield from helped(command, click.Context(command, info_name=name, parent=context), f"argosy {name}")


def helped(command: click.Command, context: click.Context, title: str) -> Iterator[str]:
    """The help of a verb and of those below it."""
    yield f"## `{title}`\n\n```text\n{command.get_help(context)}\n```\n"
    for name, below in getattr(command, "commands", {}).items():
        yield from helped(below, click.Context(below, info_name=name, parent=context), f"{title} {name}")


def causes() -> Iterator[str]:
    """The closed list."""
    yield "Each failure ends in one of these, with its exit code; the same failure again may escalate the code.\n"
    yield "| cause | exit code | what it is | what to do |\n|---|---|---|---|"
    for cause in Cause:
        code = ExitCode(cause.exit_code)
        yield f"| `{cause}` | {int(code)} {code.name.lower()} | {cause.meaning} | {cause.remedy} |"


def rules() -> Iterator[str]:
    """The list of all."""
    yield "| rule | level | `--fix` | |\n|---|---|---|---|"
    for name in sorted(RULES):
        held = page(name)
        link = f"[{name}](rules/{RULES[name].family}.md#{name.lower()})"
        yield f"| {link} | {held.level} | {'yes' if held.fixable else ''} | {held.title} |"


def rule(name: str) -> str:
    """A rule's page below its family's title."""
    text = re.sub(r"^(#+ )", r"#\1", page(name).text.replace("```diff toml", "```diff"), flags=re.MULTILINE)
    text = re.sub(r"^## .*\n(.*)", lambda head: f"## {name}\n\n**{page(name).title}** · {head[1]}\n", text, count=1)
    return re.sub(r"^(https?://\S+)", r"- <\1>", text, flags=re.MULTILINE)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
