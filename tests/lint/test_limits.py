"""What a file may ask of lint: more than any manifest needs, and not more than a machine has."""

from __future__ import annotations

from argosy.workflows.lint.linter import lint
from argosy.workflows.lint.reading import read_text
from argosy.workflows.lint.view.script import MOST_COMMANDS, commands


def test_a_script_of_thousands_of_commands_is_read_up_to_a_limit() -> None:
    script = "\n".join(f"export A{number}={number} && echo {number}" for number in range(20_000))
    assert len(commands(script)) <= MOST_COMMANDS + 2
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: r/x:1\n"
    body = "".join(f"        {line}\n" for line in script.split("\n"))
    source = read_text(f"{pod}    command:\n    - bash\n    - -c\n    - |\n{body}".encode(), "pod.yaml")
    assert not [each for each in lint([source]) if each.rule == "YAML001"]
