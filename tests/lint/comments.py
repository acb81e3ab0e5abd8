"""Comments strewn over a YAML text."""

from __future__ import annotations

import re

import yaml


def with_comments(text: str, at: list[tuple[int, bool]]) -> tuple[str, list[str]]:
    """Comments on lines of their own and behind values, where YAML takes them as comments."""
    before = list(yaml.safe_load_all(text))
    written = []
    for number, (index, behind) in enumerate(at):
        lines = text.split("\n")
        index %= max(1, len(lines) - 1)
        comment = f"# comment {number}"
        indent = re.match(" *", lines[index])
        assert indent is not None
        lines[index : index + 1] = [f"{lines[index]} {comment}"] if behind else [indent[0] + comment, lines[index]]
        tried = "\n".join(lines)
        try:
            if list(yaml.safe_load_all(tried)) == before:
                text = tried
                written.append(comment)
        except yaml.YAMLError:
            continue
    return text, written
