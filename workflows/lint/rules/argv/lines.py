"""Lines of a script in a YAML block: what folding does to them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.pod import Container


@rule("ARGV050", Level.ERROR, on=Container)
def folded_continuation(container: Container) -> Iterator[Problem]:
    """A backslash at the end of a line of a folded block (``>``): folding makes it an escaped space."""
    script = container.script
    if script is None or getattr(script.yaml, "style", None) != ">":
        return
    match = re.search(r"(\S+) \\ (?=\S)", script.text)
    if match is not None:
        yield Problem(
            script,
            "the block folds its lines into one, so the backslash at a line's end becomes an escaped space: "
            "a word of its own in the middle of the command",
            "write | instead of >, or take the backslashes away",
            inside=match[1],
        )
