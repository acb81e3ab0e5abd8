"""Settings that no flag gives, and with which a script goes on: what its files of settings, or its own names, hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from argosy.workflows.script.flags import Flag
from argosy.workflows.script.globs import key_of
from argosy.workflows.script.resuming import GOES_ON, LOADS, OTHERS, feeds_an_optimizer
from argosy.workflows.script.settings import Settings
from argosy.workflows.script.source import Function, Source, argument, last_name, plain
from argosy.workflows.script.values import Values

_PATH = re.compile(
    r"^resume(_from)?(_checkpoint|_ckpt|_path)?$|^(load_|restore_)?(checkpoint|ckpt)_path$|^restore(_from)?$"
)
_OF_KEY = re.compile(
    r"^(resume|restore|pretrain|load|ckpt|checkpoint|init)(?!.*(only|param|strict|every|freq|interval|dir))"
)

_NAMES = re.compile(r"resume|restore|ckpt|checkpoint|path|file")


@dataclass(frozen=True)
class Asked:
    """A setting with the path that a script goes on from: its name, what the script calls it, and where it asks for it;
    ``words``: how the command line gives it a value, where that can be told.
    """

    name: str
    text: str
    where: str
    words: tuple[str, ...] = ()
    switch: str = ""
    """Another setting, without which it does not."""
    also: tuple[str, ...] = ()
    """What else it loads for a resume, where settings of their own name that."""


def asked_for(source: Source, values: Values, flags: Sequence[Flag], settings: Settings, whole: bool) -> Asked | None:
    """A setting that no flag gives, and whose file is loaded: ``if config.resume: load(...)``; of files of ``settings``
    the last parts of keys may be called otherwise; ``whole``: some optimizer gets its state. What gives it that is the
    one; what gives the model its weights only begins anew.
    """
    known, last = {flag.attribute for flag in flags}, {key.rpartition(".")[2]: key for key in settings.keys}
    found, come_to = list[tuple[tuple[bool, bool, bool], Asked]](), {*source.calls}
    near = {source.function_of(call) for call in come_to}  # what it does not come to as the setting is now
    near -= {each for each in near if each is not None and not _is_used(each, source)}
    for call in (node for node in source.nodes if isinstance(node, ast.Call) and source.function_of(node) in near):
        if not (last_name(call.func) in (*LOADS, "load_state") or re.match("_*(load_|resume)", last_name(call.func))):
            continue
        for above in reversed([*source.above(call)]):
            for node in ast.walk(above.test) if isinstance(above, ast.If) else ():
                name, text = _setting(node)
                low = name.lower()  # yacs has them in capitals
                like = _PATH.search(low) or (name in last and _OF_KEY.search(low) and not OTHERS.search(low))
                on = whole or "resume" in low or last_name(call.func) in ("load_state", "load_checkpoint")
                if like and name not in known and on:
                    words = _words_of_yacs(source, text) or _words_of_dots(
                        source, text, key_named(name, text, settings.keys)
                    )
                    rank = (_restores(call, source), "resume" in low, call in come_to)
                    switch = _switch_of(call, settings)
                    if (path := _given_for(call, name, {*last})) is not None:
                        (name, text), switch = path, text
                    found.append((rank, Asked(name, text, source.where(above), words, switch)))
    if not found:
        return _of_fit(source, values, settings, known)
    best = max(found, key=lambda each: each[0])[1]
    loads = (call.args[0] for call in source.calls if last_name(call.func) in LOADS and call.args)
    paths = [_setting(each) for each in loads if isinstance(each, ast.Attribute | ast.Subscript)]
    others = (text for name, text in paths if "resume" in name and name not in {*known, best.name})
    return replace(best, also=tuple(dict.fromkeys(others)))


def _of_fit(source: Source, values: Values, settings: Settings, known: Container[str]) -> Asked | None:
    """What Lightning is told to go on from: ``trainer.fit(model, ckpt_path=cfg.resume)``."""
    given = (argument(call, "ckpt_path") for call in source.calls if last_name(call.func) == "fit")
    for each in (one for path in given if path is not None for one in (path, *values.bindings.origins(path))):
        name, text = _setting(each)
        if isinstance(each, ast.Attribute) and _PATH.search(name) and name not in known:
            words = (f"++{text.partition('.')[2]}=",) if settings.hydra else ()
            return Asked(name, text, source.where(each), words)
    return None


def _is_used(function: Function, source: Source) -> bool:
    """Whether anything calls it, or hands it on: ``args.load_model`` does not."""
    named = (node.func if isinstance(node, ast.Call) else node for node in source.nodes
             if isinstance(node, ast.Call | ast.Name))  # fmt: skip
    return function.name.startswith("__") or any(last_name(each) == function.name for each in named)


def _given_for(call: ast.Call, name: str, keys: Container[str]) -> tuple[str, str] | None:
    """Of ``if config["resume"]: load(config["ckpt"])`` the setting that names the path; None where it is the same."""
    given = [_setting(one) for each in call.args for one in ast.walk(each)
             if isinstance(one, ast.Attribute | ast.Subscript)]  # fmt: skip
    paths = (each for each in given if _NAMES.search(each[0]) and (each[0] in keys or "['" in each[1]))
    return None if any(each == name for each, _ in given) else next(paths, None)


def _switch_of(call: ast.Call, settings: Settings) -> str:
    """What a load is given that says how far to go on, where the files say no: ``load(path, resume=config.resume)``."""
    given = ((_setting(word.value), word.arg or "") for word in call.keywords)
    return next((text for (name, text), word in given if "resume" in word
                 and (key := key_named(name, text, settings.keys)) and key not in settings.values), "")  # fmt: skip


def key_named(name: str, text: str, keys: Iterable[str]) -> str:
    """The key of the files that the script calls so: ``a.b`` of ``config["a"].b``; "" where several may be meant."""
    likely = [key for key in keys if key.rpartition(".")[2] == name]
    whole = re.sub(r"\[['\"](\w+)['\"]\]", r".\1", text)
    same = [key for key in likely if f".{whole}".endswith(f".{key}")]
    return max(same, key=len) if same else likely[0] if len(likely) == 1 else ""


def _restores(call: ast.Call, source: Source) -> bool:
    """Whether an optimizer gets its state of it: here, or in the method that is called."""
    named = [node for node in source.nodes if isinstance(node, Function) and node.name == last_name(call.func)]
    return feeds_an_optimizer(call, source) or any(GOES_ON.search(ast.unparse(each)) for each in named)


def _words_of_dots(source: Source, text: str, key: str) -> tuple[str, ...]:
    """``--options run.resume=`` where OmegaConf reads words of the command line as keys with dots."""
    readers = {last_name(call.func) for call in source.calls}
    root, _, below = text.partition(".")
    if "[" not in text and any("from_cli()" in ast.unparse(node.value) for node in source.nodes
                               if isinstance(node, ast.Assign) and root in map(last_name, node.targets)):  # fmt: skip
        return (f"{below}=",)  # all words are such
    names = [plain(call.args[0]) or "" for call in source.calls if last_name(call.func) == "add_argument" and call.args
             and plain(argument(call, "nargs")) in ("+", "*")]  # fmt: skip
    flag = next((name for name in names if re.search("opt|override|set", name)), None)
    known = "from_dotlist" in readers and key
    return (*([flag] if flag[0] == "-" else []), f"{key}=") if known and flag else ()


def _words_of_yacs(source: Source, text: str) -> tuple[str, ...]:
    """``model.resume`` of ``cfg.model.resume``, where ``cfg`` takes words of the command line, after their flag."""
    merges = (call for call in source.calls if last_name(call.func) == "merge_from_list" and call.args)
    given = {key_of(call.args[0]) for call in merges}
    names = [plain(call.args[0]) or "" for call in source.calls if last_name(call.func) == "add_argument" and call.args]
    flag = next((name for name in names if name.lstrip("-").replace("-", "_") in given), None)
    key = text.partition(".")[2]
    return (*([flag] if flag and flag[0] == "-" else []), key) if key and given and "[" not in key else ()


def _setting(node: ast.AST) -> tuple[str, str]:
    """``config.resume``, ``config["resume"]`` and ``config.get("resume")``: the name, and the place to write to."""
    if isinstance(node, ast.Call) and last_name(node.func) == "get" and node.args and (name := plain(node.args[0])):
        return name, f"{ast.unparse(node.func.value)}[{name!r}]" if isinstance(node.func, ast.Attribute) else ""
    return (key_of(node) or last_name(node), ast.unparse(node)) if isinstance(node, ast.expr) else ("", "")
