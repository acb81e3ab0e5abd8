"""Objects of libraries that are known by what they were given: Accelerate's models, writers of logs."""

from __future__ import annotations

import ast
import posixpath

from argosy.workflows.script.builtin import Builtins
from argosy.workflows.script.domain import ANEW, NUMBER, Frame, FunctionValue, Unknown, Value

_NOTHING = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
_PLACE = ast.Lambda(_NOTHING, ast.Name("place", ast.Load()))
"""Gives the folder of a log."""


class Handed(Builtins):
    """Makes them."""

    def _fn_prepare(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        if not owner.endswith("Accelerator()"):
            raise KeyError(owner)  # another's
        return args[0] if len(args) == 1 else tuple(args)

    def _fn_unwrap_model(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        return args[0]

    def _fn_SummaryWriter(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        place = args[0] if args else named.get("log_dir", named.get("logdir", f"runs/{self.hole(Unknown('', ANEW))}"))
        told = FunctionValue(_PLACE, Frame({"place": place}, ""))
        below = Unknown("", attributes={"get_logdir": told})
        return Unknown("", attributes={"log_dir": place, "logdir": place, "get_logdir": told, "file_writer": below})

    def _fn_TensorBoardLogger(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        told = {**dict(zip(("save_dir", "name", "version"), args, strict=False)), **named}
        version = told.get("version") or f"version_{self.hole(Unknown('', NUMBER))}"
        parts = (told["save_dir"], told.get("name", "lightning_logs"), version)
        return Unknown("", attributes={**told, "log_dir": posixpath.join(*map(self.text, parts))})

    _fn_CSVLogger = _fn_TensorBoardLogger  # both Lightning's
