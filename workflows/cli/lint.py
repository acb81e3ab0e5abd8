"""``argosy lint``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from argosy.workflows.cli.options import as_json
from argosy.workflows.cli.output import emit


@click.command()
@click.argument("paths", nargs=-1, metavar="FILE|DIR|- …")
@as_json
def command(paths: tuple[str, ...], as_json: bool) -> int:
    """Find what is wrong in training manifests, without a cluster.

    \b
    Example:
      argosy lint pytorchjob.yaml
    """
    from argosy.workflows.lint.finding import Level
    from argosy.workflows.lint.linter import lint
    from argosy.workflows.lint.reading import find_files, read_file, read_text

    files = []
    for path in paths:
        if path == "-":
            files.append(read_text(sys.stdin.buffer.read(), "<stdin>"))
        else:
            files.extend(read_file(each) for each in find_files(Path(path)))
    found = lint(files)
    if as_json:
        keys = ("rule", "file", "line", "message", "remedy")
        emit({"findings": [{**{key: getattr(each, key) for key in keys}, "level": each.level.word} for each in found]})
    else:
        for each in found:
            click.echo(f"{each.place}: {each.level.word}[{each.rule}]: {each.message}; {each.remedy}")
    return 1 if any(each.level is Level.ERROR for each in found) else 0
