"""Where a script may save, and what may make it go on, by the names of things alone: for whoever has to say it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from argosy.workflows.script.settings import Settings
from argosy.workflows.script.source import Source, last_name, plain

MOST = 6
ASKED = ("load_checkpoint", "load_state", "restore", "restore_checkpoint", "load_training_state")
"""So are the methods called by which a library gives back all that it saved."""
FOLDER = re.compile(
    r"(?i)(^|[_.-])(save|output|out|work|ckpt|checkpoints?|results?|exp\w*|log)[_.-]?(dir|folder|path|root)$"
)
"""So is called what names the folder of a run, or of its checkpoints."""
_SWITCH = re.compile(r"(?i)(^|[_.-])save_?(models?|check_?points?|ckpts?|weights)$")
"""So is a setting called without which nothing is saved, where it is off."""
_WAY = re.compile(
    r"(?i)(^|[_.-])((auto[_-]?)?(resume|restore|restart)|continue)(?!\w*_(id|optim\w*|only)$)|"
    r"(^|[_.-])(re)?load_(latest|path|(check|chk|ck)_?(point|pnt|pt)|model)|^(re)?load$|^(autoresume|read_checkpoint)"
)
_FILE = re.compile(r"(?i)(^|[_.-])(check|chk|ck)_?(point|pnt|pt)_?(path|file)?$")
"""So is a setting called that names what is loaded, where it is empty."""
_NEWEST = re.compile(r"(?i)resume|latest|continue")


def folders(arguments: Sequence[str], settings: Settings) -> tuple[tuple[str, str], ...]:
    """Words of the command line and keys of its files that are called as a folder is, and the folder of each."""
    told = dict[str, str]()
    for word, after in zip(arguments, (*arguments[1:], ""), strict=False):
        name, equals, value = word.partition("=")
        if FOLDER.search(name) and (equals or name.startswith("-")):
            told.setdefault(name.lstrip("+"), value if equals else after)
    for key, file in settings.keys.items():
        if FOLDER.search(key) or (_SWITCH.search(key) and not settings.values.get(key)):
            told.setdefault(f"{key} of {file}", settings.values.get(key, ""))
    return tuple(
        (name, value) for name, value in told.items() if "://" not in value and "." not in value.rpartition("/")[2]
    )[:MOST]


def ways(source: Source, settings: Settings) -> tuple[str, ...]:
    """Flags, keys of settings and fields of classes that are called as what makes a script go on."""
    found = [f"{key} of {file}" for key, file in settings.keys.items() if _WAY.search(key.rpartition(".")[2])
             or (_FILE.search(key) and settings.values.get(key) == "")]  # fmt: skip
    found += _declared(source)
    return tuple(sorted(dict.fromkeys(found), key=lambda name: not _NEWEST.search(name)))[:MOST]


def _declared(source: Source) -> Iterator[str]:
    for call in source.calls:
        names = [text for each in call.args if (text := plain(each) or "").startswith("-")]
        if last_name(call.func) == "add_argument" and any(_WAY.search(name.lstrip("-")) for name in names):
            yield f"{max(names, key=len)} ({source.where(call)})"
    for node in source.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and not node.value.value:
            # A setting that is written down: ``checkpoint = None``, ``cfg.model.resume = ""``.
            target = node.targets[0]
            named = _WAY.search(last_name(target)) or _FILE.search(last_name(target))
            if named and (_is_kept(target, source) if isinstance(target, ast.Name) else _is_a_setting(target)):
                yield f"{ast.unparse(target)} ({source.where(node)})"
        name = node.target.id if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else ""
        if _WAY.search(name) and source.class_of(node) is not None and source.function_of(node) is None:
            yield f"{name} ({source.where(node)})"


def _is_kept(name: ast.Name, source: Source) -> bool:
    """Whether it is a constant: what the script writes anew, as what it is about to save, is none."""
    written = [each for each in source.nodes if isinstance(each, ast.Name) and each.id == name.id
               and isinstance(each.ctx, ast.Store) and source.function_of(each) is None]  # fmt: skip
    return written == [name]


def _is_a_setting(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and not ast.unparse(target).startswith("self.")
