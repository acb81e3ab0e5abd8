"""What ``argosy init`` shows of a script where only its reader can say the rest: calls, and lines to fill in."""

from __future__ import annotations

import json
import posixpath
import re

from argosy.workflows.script.facts import ScriptFacts
from argosy.workflows.script.flags import Flag
from argosy.workflows.script.resuming import NUMBERED, OF_MODEL
from argosy.workflows.script.values import OUTSIDE

MOST = 4
FOLDER = "FOLDER"
STEP = "{step}"


def account(facts: ScriptFacts) -> str:
    """The calls that save and load, by place, in the script's own words."""
    told = [each.told("saves") for each in facts.seen_saves[:MOST]]
    told += [each.told("loads") for each in facts.seen_loads[:MOST]]
    return "What it saves and loads:" + "".join(f"\n    {line}" for line in told)


def to_write(facts: ScriptFacts) -> str:
    """A ``[checkpoint]`` with what is known filled in."""
    globs, above = _globs(facts), folder_of(facts)
    names = [posixpath.relpath(each, above) for each in globs] if above else [*map(_below, globs)]
    # Of what has no ending it is not known whether it is a file or a folder.
    names += [f"{each}/**/*" for each in names if each.endswith("*") and not each.endswith("/*")]
    lines = ["[checkpoint]", 'mode = "opaque"', f'path = "{above or FOLDER}"']
    unknown = any(not each.glob for each in facts.seen_saves)  # which of them is the checkpoint?
    lines.append(f"include = {json.dumps(['GLOB'] if unknown else names or ['GLOB'])}")
    if words := goes_on(facts):
        lines.append(f"resume_args = {json.dumps(words)}")
    told = "" if above else f" ({FOLDER}: where it writes, below the folder that it runs in)"
    return f"What to write into run.toml{told}:" + "".join(f"\n    {line}" for line in lines)


def _globs(facts: ScriptFacts) -> list[str]:
    return list(dict.fromkeys(each.glob for each in facts.seen_saves if each.glob))


def folder_of(facts: ScriptFacts) -> str:
    """The folder that all that it saves lies in, as far as it is known; "" where it is not."""
    globs = _globs(facts)
    inside = [each for each in globs if not each.startswith((*OUTSIDE, "*"))]
    return posixpath.commonpath([_fixed(each) for each in inside]) if inside and len(inside) == len(globs) else ""


def _below(glob: str) -> str:
    """What is known of it below the folder of which nothing is."""
    return re.sub(r"^(\*/)+", "", glob) if glob.startswith("*/") else glob.rpartition("/")[2]


def _fixed(glob: str) -> str:
    """The folders above the first that is not certain."""
    parts = glob.split("/")[:-1]
    return "/".join(parts[: next((place for place, part in enumerate(parts) if "*" in part), len(parts))]) or "."


def goes_on(facts: ScriptFacts) -> list[str]:
    """The words that make it go on, as far as they are known; [] for none."""
    flag = facts.resume_flag()
    if flag is not None and not flag.takes_value and not any(flag in each.flags for each in facts.seen_loads):
        flag = None if facts.seen_loads else flag  # what is loaded does not ask for it
    told = (one for each in facts.seen_loads for one in each.flags
            if one.takes_value and not one.default and OF_MODEL.search(one.attribute))  # fmt: skip
    flag = flag or next(told, None)
    return [] if flag is None else resume_words(flag)


def words_of(flag: str, value: str) -> list[str]:
    """``--flag value``, and ``key=value`` for Hydra, to which a ``=`` in a path says something if it is not quoted."""
    return [flag + (f"'{value}'" if "{newest" in value else value)] if flag.endswith("=") else [flag, value]


def stands_for(flag: Flag) -> str:
    """What the flag is given: the number of the newest checkpoint, or its path."""
    return STEP if NUMBERED.search(flag.attribute) else "{newest}"


def resume_words(flag: Flag) -> list[str]:
    """The flag, and what it is given if it takes a value."""
    return words_of(flag.name, flag.truth or stands_for(flag)) if flag.takes_value else [flag.name]
