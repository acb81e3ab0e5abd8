"""What ``argosy init`` says where nothing shows where a script saves."""

from __future__ import annotations

import re
import shlex

import click

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.init_account import account, folder_of, goes_on, to_write, words_of
from argosy.workflows.script.facts import ScriptFacts
from argosy.workflows.script.values import OUTSIDE

MOST_LINES = 3
NOTHING = "saves no checkpoint that can be seen"
SETTINGS = re.compile(r"(^|_)(conf|config|cfg|yaml|json|hparams)(_(file|path|name))?$")
PLACEHOLDER = re.compile(r"(?i)(^|/)path/to(/|$)|your[_-]\w*(path|dir)")


def check_restart(facts: ScriptFacts) -> None:
    """Accept a script that starts again beside what it saved.

    Raises:
        InputError: it removes that, or ends where it is there.
    """
    if facts.removed is not None:
        where, gone = facts.removed
        raise InputError(
            f"SCRIPT: {where} removes {gone} when it starts, and with it what it saved and would go on from; let it do "
            "so only where nothing is to be gone on from, or not at all, and call argosy init again"
        )
    if facts.barred is not None:
        where, test = facts.barred
        raise InputError(
            f"SCRIPT: {where} ends the script if {test}, as it is in a restart, with what was saved; let it go on "
            "then, or call argosy init with the flag that does so"
        )


def tell_ways(facts: ScriptFacts) -> None:
    """Say what may make it go on, as far as names tell that."""
    if facts.may_go_on and not facts.loads:
        click.echo(f"What may make it go on, by its name: {'; '.join(facts.may_go_on)}", err=True)


def refused(facts: ScriptFacts) -> InputError:
    """The error where nothing shows where it saves: what to say after ``--``, if anything tells that, or the folder."""
    told = [(where, flag) for where, flag in facts.unclear_saves if flag is not None]
    # A file of settings or of data names no folder, however the path came of it.
    told.sort(key=lambda each: each[0] not in facts.sure)
    if named := next((each for each in told if not (SETTINGS.search(each[1].attribute))), None):
        where, flag = named
        whole = any(each.where == where and each.file and each.file.name == flag.name for each in facts.seen_saves)
        say = " ".join(words_of(flag.name, "out/model.pt" if whole else "VALUE"))
        fixed = {f"{each.where}: {each.folder}" for each in facts.saves if each.folder.startswith(OUTSIDE)
                 and not each.folder.startswith((flag.default or "").rstrip("/") or OUTSIDE)}  # fmt: skip
        more = f", and another in the place of what is written down ({', '.join(sorted(fixed))})" if fixed else ""
        return InputError(
            f"SCRIPT: {where} saves where {flag.name} says, which "
            f"{f'is {flag.default}' if flag.default else 'has no value'}; name a {'file in a ' * whole}folder below "
            f"the one the script runs in, after --, as in `argosy init SCRIPT -- {say}`{more}"
        )
    for each in facts.saves:
        begins = (value for value in facts.written if len(value) > 1 and each.folder.startswith(value.rstrip("/")))
        if (value := max(begins, key=len, default="")) and (each.folder.startswith(OUTSIDE) or is_empty(each.folder)):
            key, file = facts.written[value]
            return InputError(
                f"SCRIPT: {each.where} saves where {key} of {file} says, which is {value}; write a folder below the "
                "one the script runs in there"
            )
    lines = [f"{each.where}: {each.folder}" for each in facts.saves]
    seen_at = {each.where for each in facts.saves}
    lines += [where for where, _ in facts.unclear_saves if where not in seen_at]
    more = f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
    seen = f"saves where only a run could tell ({', '.join(lines[:MOST_LINES])}{more})" if lines else NOTHING
    if lines and not facts.saves and facts.skipped.issuperset(lines):
        seen = f"does not come to what it saves as its flags and settings are ({', '.join(lines[:MOST_LINES])})"
        if facts.set_off is not None:
            where, stands = facts.set_off
            return InputError(f"SCRIPT: {seen}: {where} has `{stands}`; write True there, and call argosy init again")
    if not facts.saves and facts.sure.isdisjoint(lines) and (kept := facts.ended) and lines:
        only, flag = kept
        say = " ".join(words_of(flag.name, "VALUE")) if flag.takes_value else flag.name
        return InputError(f"SCRIPT: {only}; say it after --, as in `argosy init SCRIPT -- {say}`")
    known = not any(where not in seen_at for where, _ in facts.unclear_saves)
    if facts.saves and known and all(each.folder.startswith(OUTSIDE) for each in facts.saves):
        where = ", ".join(dict.fromkeys(lines[:MOST_LINES]))
        # What lies above its own file lies below the folder above; what lies above the one it is started in never does.
        own = any("__file__" in each.read_text(encoding="utf-8", errors="replace") for each in facts.modules)
        return InputError(
            f"SCRIPT: saves outside the folder that it runs in, which is all that is kept ({where}); write a folder "
            f"below that one there, as in 'out'{', or call argosy init in the folder above' * (own and '../' in where)}"
        )
    return _unknown(facts, seen, bool(lines))


def _unknown(facts: ScriptFacts, seen: str, saves: bool) -> InputError:
    """Where nothing at all tells the folder: what to say of it, or what to write."""
    if not saves and facts.loop is not None:
        click.echo(f"What makes it save and go on:\n{facts.loop.lines('out/argosy.pt', facts.end)}", err=True)
        return InputError(
            f"SCRIPT: {NOTHING}, so a killed run could not resume; write the lines above into it, or use "
            "argosy.Checkpointer there, and call argosy init again"
        )
    if any(each.glob or each.flags for each in facts.seen_saves) or any(each.flags for each in facts.seen_loads):
        click.echo(f"{account(facts)}\n{to_write(facts)}{_going_on(facts)}", err=True)
    if facts.may_save:
        where = [f"{name} is {folder or 'not set'}" for name, folder in facts.may_save]
        click.echo(f"Where it may save, by its name: {'; '.join(where)}", err=True)
    added = "".join(f" --resume-arg={shlex.quote(word)}" for word in goes_on(facts))
    inside = {each for _, each in facts.may_save if each and not each.startswith(OUTSIDE) and "$" not in each}
    inside = {known} if (known := folder_of(facts)) not in ("", ".") and not is_empty(known) else inside
    folder = shlex.quote(inside.pop()) if len(inside) == 1 else "FOLDER"
    say = f"as in `argosy init SCRIPT --opaque {folder} --include GLOB{added}`"
    if facts.variables:
        name = facts.variables[0]
        return InputError(
            f'SCRIPT: {seen}; ${name} may say where: name a folder {say}, and write env = {{ {name} = "FOLDER" }} into '
            "run.toml"
        )
    configs = [each.name for each in facts.flags if each.takes_value and SETTINGS.search(each.attribute)]
    if configs:
        return InputError(
            f"SCRIPT: {seen}; if a file of settings says where, name it after --, as in "
            f"`argosy init SCRIPT -- {' '.join(f'{name} FILE' for name in configs[:2])}`, else the folder and "
            f"its checkpoints, {say}"
        )
    return InputError(
        f"SCRIPT: {seen}, so a killed run could not resume; name the folder (relative, as the script writes it) and "
        f"its checkpoints, {say}, or use argosy.Checkpointer in the script"
    )


def _going_on(facts: ScriptFacts) -> str:
    """What is to be said beside the lines where nothing was seen that makes it go on."""
    saved = {each.glob.rpartition("/")[2] for each in facts.seen_saves if each.glob}
    again = any(each.glob.rpartition("/")[2] in saved for each in facts.seen_loads)
    if (
        again
        or not (facts.saves or facts.unclear_saves)
        or goes_on(facts)
        or facts.loads
        or facts.restores
        or facts.may_go_on
        or facts.trainer is not None
    ):
        return ""
    told = "\nNothing was seen that makes it go on: every restart may begin anew."
    lines = "" if facts.loop is None else facts.loop.lines("FOLDER/argosy.pt", facts.end)
    more = lines and f" For it to go on write:\n{lines}"
    return f"{told}{more}"


def is_empty(path: str) -> bool:
    """Whether it is one that its reader is meant to replace."""
    return PLACEHOLDER.search(path) is not None
