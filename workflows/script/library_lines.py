"""The lines that make a library's own loop save and go on: ``learn`` of Stable Baselines, ``train`` of ultralytics,
``fit`` of Keras.
"""

from __future__ import annotations

import ast

from argosy.workflows.script.lines import FOLDER, Loop, loops_around
from argosy.workflows.script.source import Source, argument, last_name
from argosy.workflows.script.values import Values

_STABLE = """\
    at the top:
        import glob, os
        from stable_baselines3.common.callbacks import CheckpointCallback
    before {where}:
        found = sorted(glob.glob("FOLDER/*_steps.zip"), key=os.path.getmtime)
        if found:
            {model} = {kind}.load(found[-1], env={model}.get_env())
    instead of {where} (a buffer of old steps is not kept):
        {model}.learn({given})"""
_ULTRALYTICS = """\
    at the top:
        import os
    before {where}:
        newest = os.path.abspath("FOLDER/train/weights/last.pt")
        going_on = os.path.exists(newest)
        if going_on:
            {model} = {kind}(newest)
    instead of {where}:
        {model}.train({given})"""
_KERAS = """\
    at the top:
        from {library}.callbacks import BackupAndRestore
    instead of {where} (it goes on with the epoch that it was ended in, and keeps the optimizer, too):
        {model}.fit({given})"""
_OF_ULTRALYTICS = {
    "project": f'os.path.abspath("{FOLDER}")', "name": '"train"', "exist_ok": "True", "resume": "going_on",
}  # fmt: skip


def library_lines(source: Source, values: Values) -> Loop | None:
    """Around the call that trains; None where no library of these does, or where it is called again and again."""
    for call in source.calls:
        owner, _, name = values.machine.named(call.func).rpartition("().")
        library = owner.partition(".")[0]
        if not isinstance(call.func, ast.Attribute) or any(loops_around(call, source)):
            continue
        told = {"where": source.where(call), "model": ast.unparse(call.func.value), "kind": _made_by(call, source)}
        if name == "learn" and library in ("stable_baselines3", "sb3_contrib") and told["kind"]:
            return _loop(_STABLE.format(**told, given=_of_stable(call, told["model"])), told["where"])
        if last_name(call.func) == "fit" and library in ("keras", "tensorflow", "tf_keras"):
            told["library"] = "keras" if "keras" in source.packages else "tensorflow.keras"
            return _loop(_KERAS.format(**told, given=_of_keras(call)), told["where"])
        if name == "train" and library == "ultralytics" and told["kind"]:
            kept = [ast.unparse(each) for each in (*call.args, *call.keywords)
                    if getattr(each, "arg", "") not in _OF_ULTRALYTICS]  # fmt: skip
            given = ", ".join([*kept, *(f"{key}={value}" for key, value in _OF_ULTRALYTICS.items())])
            return _loop(_ULTRALYTICS.format(**told, given=given), told["where"])
    return None


def _loop(told: str, where: str) -> Loop:
    return Loop(where, "", "", "", "", (), (), False, "", told=told)


def _of_stable(call: ast.Call, model: str) -> str:
    steps, callback = argument(call, "total_timesteps", 0), argument(call, "callback", 1)
    own = [] if callback is None else callback.elts if isinstance(callback, ast.List) else [callback]
    saver = f'CheckpointCallback(save_freq=10_000, save_path="{FOLDER}")'
    first = "" if steps is None else f"max(0, {ast.unparse(steps)} - {model}.num_timesteps), "
    kept = [ast.unparse(each) for each in call.keywords
            if each.arg not in ("total_timesteps", "callback", "reset_num_timesteps")]  # fmt: skip
    callbacks = ", ".join([*map(ast.unparse, own), saver])
    return f"{first}{', '.join([f'callback=[{callbacks}]', *kept, 'reset_num_timesteps=False'])}"


def _of_keras(call: ast.Call) -> str:
    known = argument(call, "callbacks", 5)
    none = known is None or isinstance(known, ast.Constant)
    own = [] if known is None or none else known.elts if isinstance(known, ast.List) else [ast.Starred(known)]
    kept = [ast.unparse(each) for each in (*call.args[:5], *call.args[6:], *call.keywords)
            if getattr(each, "arg", "") != "callbacks"]  # fmt: skip
    callbacks = ", ".join([*map(ast.unparse, own), f'BackupAndRestore("{FOLDER}/backup")'])
    return ", ".join([*kept, f"callbacks=[{callbacks}]"])


def _made_by(call: ast.Call, source: Source) -> str:
    """The class that makes what the call is a method of, as the script calls it."""
    model = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    made = (node.value for node in source.nodes if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            and model in map(ast.unparse, node.targets))  # fmt: skip
    found = next((each.func for each in made), None)
    of_file = isinstance(found, ast.Attribute) and last_name(found) == "load"
    return "" if found is None else ast.unparse(found.value if of_file and isinstance(found, ast.Attribute) else found)
