"""The lines that make a library's own loop save and go on: ``fit`` of Keras."""

from __future__ import annotations

import ast

from argosy.workflows.script.lines import FOLDER, Loop, loops_around
from argosy.workflows.script.source import Source, argument, last_name
from argosy.workflows.script.values import Values

_KERAS = """\
    at the top:
        from {library}.callbacks import BackupAndRestore
    instead of {where} (it goes on with the epoch that it was ended in, and keeps the optimizer, too):
        {model}.fit({given})"""


def keras_lines(source: Source, values: Values) -> Loop | None:
    """Around the call that trains; None where Keras does not, or where it is called again and again."""
    for call in source.calls:
        library = values.machine.named(call.func).partition(".")[0]
        if not isinstance(call.func, ast.Attribute) or any(loops_around(call, source)):
            continue
        if last_name(call.func) == "fit" and library in ("keras", "tensorflow", "tf_keras"):
            told = {"where": source.where(call), "model": ast.unparse(call.func.value), "given": _of_keras(call)}
            told["library"] = "keras" if "keras" in source.packages else "tensorflow.keras"
            return _loop(_KERAS.format(**told), told["where"])
    return None


def _loop(told: str, where: str) -> Loop:
    return Loop(where, "", "", "", "", (), (), False, "", told=told)


def _of_keras(call: ast.Call) -> str:
    known = argument(call, "callbacks", 5)
    none = known is None or isinstance(known, ast.Constant)
    own = [] if known is None or none else known.elts if isinstance(known, ast.List) else [ast.Starred(known)]
    kept = [ast.unparse(each) for each in (*call.args[:5], *call.args[6:], *call.keywords)
            if getattr(each, "arg", "") != "callbacks"]  # fmt: skip
    callbacks = ", ".join([*map(ast.unparse, own), f'BackupAndRestore("{FOLDER}/backup")'])
    return ", ".join([*kept, f"callbacks=[{callbacks}]"])
