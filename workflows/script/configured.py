"""Classes that hold a script's settings: what the command line, or a file, makes of their fields."""

from __future__ import annotations

import ast

from argosy.workflows.script.calls import Calls
from argosy.workflows.script.domain import ClassValue, FunctionValue, Instance, Unknown, Value
from argosy.workflows.script.source import plain


class Configured(Calls):
    """Makes their objects."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, Value] = {}
        """Those that Hydra knows by a name."""

    def configures(self, function: FunctionValue, name: str) -> Value:
        """The class of the settings that a command is given; None where its parameter is anything else."""
        node = function.node
        for each in [] if isinstance(node, ast.Lambda) else node.decorator_list:
            named = {word.arg: word.value for word in getattr(each, "keywords", [])}
            if (kind := self.stored.get(plain(named.get("config_name")) or "")) is not None:
                return kind
        says = next((each.annotation for each in node.args.args if each.arg == name), None)
        kind = self.evaluate(says, function.frame) if isinstance(says, ast.Name | ast.Attribute) else None
        return kind if isinstance(kind, ClassValue) and self.whole(kind) else None

    def of_dataclass(self, kind: Value, default: Value = None) -> Value:
        """What a parser makes of a class whose fields are its flags, or of a function whose parameters are."""
        if isinstance(kind, FunctionValue):
            return self._enter(kind, [], {}, entry=True)
        if not isinstance(kind, ClassValue):
            return self.settings
        fields = default.attributes if isinstance(default, Instance) else {}
        return self._made(kind, [], fields | self._as_told(self.whole(kind) | fields, ""))

    def _as_told(self, fields: dict[str, Value], above: str) -> dict[str, Value]:
        """Those that the command line, or a file of settings, says; also in the objects that some are."""
        found = dict[str, Value]()
        for name, value in fields.items():
            if isinstance(value, Instance):
                value.attributes |= self._as_told(value.attributes, f"{above}{name}.")
                continue
            default = ast.Constant(None if value is ... else value)
            known = self.asked(f"{above}{name}", default) if above else None
            known = self.asked(name, default) if known is None else known
            if known is not None:
                found[name] = known
        return found

    def _fn_store(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        node = named.get("node")
        if "ConfigStore" in owner and "group" not in named and isinstance(name := named.get("name"), str):
            self.stored[name] = node.kind if isinstance(node, Instance) else node
        return None

    def _fn_field(self, args: list[Value], named: dict[str, Value], owner: str) -> Value:
        made = named.get("default_factory")
        return named.get("default", Unknown()) if made is None else self.apply(made, [], {}, None)
