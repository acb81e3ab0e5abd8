"""A training script is read, from its syntax tree; it is never run."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from argosy.steps.contract.errors import InputError
from argosy.workflows.script.account import ended_by, loaded_by, saved_by, set_off
from argosy.workflows.script.alone import trains_alone
from argosy.workflows.script.beside import asks_someone, made_once, opened
from argosy.workflows.script.data import data_facts, output_variables
from argosy.workflows.script.end import end_of
from argosy.workflows.script.facts import ScriptFacts
from argosy.workflows.script.fields import fields
from argosy.workflows.script.flags import Flag, declared, of_call
from argosy.workflows.script.given import by_place, given
from argosy.workflows.script.going_on import asked_beside, barred, loaded, removed, skipped
from argosy.workflows.script.hints import ASKED, folders, ways
from argosy.workflows.script.keras_lines import keras_lines
from argosy.workflows.script.lightning_trainer import lightning_alone
from argosy.workflows.script.lines import LONG, Loop, loop_of
from argosy.workflows.script.own_ranks import own_ranks
from argosy.workflows.script.places import SavedAt, fixed
from argosy.workflows.script.ranks import Spread, launched, launcher, spread
from argosy.workflows.script.reached import only_defined, reached_calls
from argosy.workflows.script.resuming import (
    endings,
    file_flags,
    folder_flags,
    goes_on,
    loading_flag,
    model_flag,
    not_loaded,
    switch_of_load,
    words_for_newest,
)
from argosy.workflows.script.saves import folder_lacks, saves
from argosy.workflows.script.settings import RUN_DIR, Settings, settings_of, with_read
from argosy.workflows.script.source import Source, last_name, read_source
from argosy.workflows.script.trainer import TrainerFacts
from argosy.workflows.script.trainers import trainer_facts
from argosy.workflows.script.turns import at_end
from argosy.workflows.script.values import Values
from argosy.workflows.script.writers import targets, wrappers_of

Places = Sequence[SavedAt]


def read_script(
    path: Path,
    arguments: Sequence[str] = (),
    folders: Sequence[Path] = (),
    environ: Mapping[str, str] = MappingProxyType({}),
    named: Places = (),
) -> ScriptFacts:
    """Parse the script and the modules beside it, or in ``folders``, that it imports.

    ``arguments`` are what it will be called with, they win over the flags' defaults; ``environ``: what it will find;
    ``named``: where somebody says that it saves.

    Raises:
        InputError: no such file, a folder, too large, not text, or not Python.
    """
    source = read_source(path, folders)
    if not named and (defined := only_defined(source)) is not None:
        say = f"name the file that calls it, or write `{defined}()` at its end"
        raise InputError(f"SCRIPT {path}: defines {defined} and calls nothing, so nothing would be trained; {say}")
    known = len(source.roots)
    for _ in range(2):  # modules in folders that the script adds to its path have flags, too
        source.calls = reached_calls(source)
        facts = _facts(source, arguments, path.parent, folders[0] if folders else path.parent, environ, named)
        if len(source.roots) == known:
            break
        source = read_source(path, [*folders, *source.roots[known:]])
        known = len(source.roots)
    return replace(facts, alone=trains_alone(source), asks=asks_someone(source, facts.sure))


def _followed(
    source: Source, arguments: Sequence[str], folder: Path, cwd: Path, environ: Mapping[str, str], more: Sequence[Flag]
) -> tuple[tuple[Flag, ...], Settings, dict[str, str | None], Values]:
    """The flags and settings, what is told of them, and what all stands for; ``more``: flags that a loop declares, or a
    function of the script's, as a first way through it has shown.
    """
    flags = (*declared(source, arguments), *fields(source), *more)
    flags = (*{flag.name: flag for flag in reversed(flags)}.values(),)[::-1]
    settings = settings_of(source, folder, arguments, flags)
    flags = (*flags, *settings.flags)
    told = {**by_place(arguments, source, flags), **given(arguments, flags)}
    settings.values |= {name: value for name, value in told.items() if value is not None}
    known = {name: settings.resolved(value) for name, value in settings.values.items()}
    values = Values(source, flags, {**known, **told}, cwd, arguments, environ)
    found = (of_call(names, words, source.where(call)) for call, names, words in values.machine.declared)
    if not more and (made := [each for each in found if each is not None]):
        return _followed(source, arguments, folder, cwd, environ, made)
    return flags, settings, told, values


def _facts(
    source: Source, arguments: Sequence[str], folder: Path, cwd: Path, environ: Mapping[str, str], named: Places
) -> ScriptFacts:
    reached = [*source.calls]
    flags, settings, told, values = _followed(source, arguments, folder, cwd, environ, ())
    source.calls = _come_to(source, {*reached, *values.machine.calls})
    (places, unclear), ranks = saves(source, values), spread(source, values)
    trainer = trainer_facts(source, values, settings, any(each.whole and not each.unless for each in places))
    loads, whole = loaded(source, values, (*fixed(places), *named)), goes_on(source)
    loop, bare = _loop(source, values, ranks), loop_of(source, values, False, bare=True)
    return ScriptFacts(
        flags=flags,
        unread=_unread(values, flags) if trainer is None else frozenset(),
        saves=places,
        unclear_saves=unclear,
        checkpointer=_checkpointer(source),
        init_from=_init_from(source),
        loads=loads,
        skipped_turns=skipped(source, values, fixed(places)),
        removed=removed(source, values, fixed(places)),
        barred=barred(source, values, (*fixed(places), *_of(trainer))),
        end=_end({each.attribute: each.default for each in flags} | told, source, trainer is not None, loop),
        trainer=trainer,
        data=data_facts(source),
        own_ranks=lightning_alone(source, values) or (own_ranks(source, values), 1),
        ranks=ranks,
        launched=launched(source, values, flags, settings),
        launcher=launcher(source, values),
        skipped=frozenset(source.where(each) for each in source.calls if each not in values.machine.calls),
        sure=frozenset(map(source.where, values.machine.sure)),
        restored_by=loading_flag(source, values, whole, bool(loads)) or switch_of_load(source, values, fixed(places)),
        of_model=model_flag(source, values, whole),
        keys=settings.keys,
        written=_written(settings, arguments),
        variables=output_variables(source, values.machine.calls),
        opened=opened(source, values),
        folders=folder_flags(source, values),
        files=file_flags(source, values),
        endings=endings(source, values),
        loop=loop,
        counting=_counting(source, bare),
        newest=words_for_newest(source),
        seen_saves=saved_by(source, values, {*(each.where for each in places), *(where for where, _ in unclear)}),
        restores=whole or any(last_name(call.func) in ASKED for call in source.calls),
        may_save=folders(arguments, read := with_read(settings, values.machine.tables)),
        may_go_on=ways(source, read),
        started=source.started(cwd),
        modules=tuple(source.paths.values()),
        stays=("" if RUN_DIR in told else settings.hydra, told.get(RUN_DIR) or "") if settings.moves else ("", ""),
        made=(folder_lacks(source, values, fixed(places)), made_once(source, values)),
        ended=ended_by(source, values),
        tells=any(whole.startswith("argosy.integrations") for whole in source.imports.values()),
        seen_loads=loaded_by(source, values),
        set_off=set_off(source, values, {where for where, _ in unclear}),
        at_end=at_end(source, values, places) if trainer is None else "",
        finals=_finals(source, values, places) if trainer is None else frozenset(),
        begins_at=_begins_at(source, values, bare),
        needs=asked_beside(source, values),
        not_loaded=not_loaded(source, values) if trainer is None else "",
    )


def _written(settings: Settings, arguments: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Of each value the key that has it, and the file; of several that of a table which an argument names."""
    keys = sorted(settings.files, key=lambda key: (key.partition(".")[0] in arguments, len(key)))
    return {settings.values[key]: (key, settings.files[key]) for key in keys}


def _counting(source: Source, loop: Loop | None) -> Loop | None:
    """The loop that counts turns; None where it begins at a name that nothing but a number was ever given."""
    given = [next(source.above(node)) for node in source.nodes if loop is not None and isinstance(node, ast.Name)
             and isinstance(node.ctx, ast.Store) and node.id == loop.first]  # fmt: skip
    fixed_at = given and all(isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant) for each in given)
    return None if fixed_at else loop


def _of(trainer: TrainerFacts | None) -> list[SavedAt]:
    return [SavedAt(trainer.folder, "*", "")] if trainer is not None and trainer.folder else []


def _begins_at(source: Source, values: Values, loop: Loop | None) -> tuple[str, Flag, bool] | None:
    """Where the loop begins at a number that a flag alone says: nothing that is loaded gives it another; and whether
    its turns are what the files are numbered by.
    """
    _, dot, name = ("", "", "") if loop is None else loop.first.rpartition(".")
    set_too = any(isinstance(each, ast.Attribute) and each.attr == name and isinstance(each.ctx, ast.Store)
                  for each in source.nodes)  # fmt: skip
    flag = values.flag(name) if dot and not set_too else None
    if loop is None or flag is None or not flag.takes_value:
        return None
    wrappers = wrappers_of(source)
    paths = [path for call in source.calls for path, _ in targets(call, source, wrappers, values)
             if any("*" in each for each in values.guesses(path))]  # fmt: skip
    told = [[node for each in (path, *values.bindings.origins(path)) for node in ast.walk(each)] for path in paths]
    named = [any(isinstance(each, ast.Name) and each.id == loop.counter for each in nodes) for nodes in told]
    steps = any(isinstance(each, ast.Mult) for nodes in told for each in nodes)  # epoch * len(loader) + batch
    return loop.where, flag, bool(named) and all(named) and not steps


def _finals(source: Source, values: Values, places: Places) -> frozenset[str]:
    """The files that are saved once, when the training is over, among others that are saved before."""
    late = [each for each in places if len(places) > 1 and at_end(source, values, [each])]
    return frozenset(each.pattern for each in late) if len(late) < len(places) else frozenset()


def _loop(source: Source, values: Values, ranks: Spread) -> Loop | None:
    """None of the script's own where each rank has a part, or a model of its own, which one file would not hold."""
    alike = ranks.by is None or ranks.alike
    return (loop_of(source, values, ranks.by is not None) if alike else None) or keras_lines(source, values)


def _end(values: Mapping[str, str | None], source: Source, by_library: bool, loop: Loop | None) -> int | None:
    turn, epochs = (None, True) if loop is None else (loop.end, bool(LONG.search(loop.counter)))
    return end_of(values, source.calls, by_library, turn, epochs)


def _unread(values: Values, flags: Sequence[Flag]) -> frozenset[str]:
    """Flags without use, where the script was gone through as far as a save."""
    saved = values.machine.parsed and values.machine.followed
    return frozenset({flag.attribute for flag in flags} - values.machine.read) if saved else frozenset()


def _come_to(source: Source, calls: set[ast.Call]) -> list[ast.Call]:
    """Them in the order of the source."""
    return [node for node in source.nodes if isinstance(node, ast.Call) and node in calls]


def _checkpointer(source: Source) -> tuple[str, bool] | None:
    """Argosy's own: others have a class of that name too."""
    final = any(isinstance(node, ast.keyword) and node.arg in ("final", None) for node in source.nodes)
    for node in source.nodes:
        own = isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "argosy"
        if own and any(alias.name == "Checkpointer" for alias in node.names):  # type: ignore[attr-defined]
            return source.where(node), final
        owner = node.value if isinstance(node, ast.Attribute) and node.attr == "Checkpointer" else None
        if isinstance(owner, ast.Name) and owner.id == "argosy":
            return source.where(node), final
    return None


def _init_from(source: Source) -> str | None:
    for node in source.nodes:
        if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Name) or node.left.id != "init_from":
            continue
        if any(isinstance(each, ast.Constant) and each.value == "resume" for each in node.comparators):
            return source.where(node)
    return None
