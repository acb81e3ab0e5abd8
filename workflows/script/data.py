"""How a training script is told where its data lie: a flag, a first argument, or a variable."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from argosy.steps.contract.errors import InputError
from argosy.workflows.script.source import Source, last_name, plain

FLAGS = (
    *("data", "data_dir", "data_path", "data_root", "data_folder", "dataset_dir", "dataset_path", "dataset_root"),
    *("train_dir", "train_data", "train_data_dir", "train_data_path"),
)
VARIABLES = ("DATA_DIR", "DATA_PATH", "DATA_ROOT", "DATASET_DIR", "DATASET_PATH", "DATA", "TRAIN_DATA", "TRAIN_DIR")


@dataclass(frozen=True)
class DataFacts:
    """``name`` as the script has it: ``--data-dir``, ``data`` (an argument by its place) or ``DATA_DIR``."""

    name: str
    where: str

    @property
    def variable(self) -> bool:
        """Whether it is a variable of the environment."""
        return self.name.isupper()

    def given(self, args: Sequence[str]) -> str:
        """What it is told now: by the arguments, or by the environment of this shell."""
        if self.variable:
            return os.environ.get(self.name, "")
        for place, text in enumerate(args):
            flag, equals, value = text.partition("=")
            if flag == self.name:
                return value if equals else "".join(args[place + 1 : place + 2])
        return ""

    def filled(self, args: Sequence[str]) -> tuple[str, ...]:
        """The arguments with ``{data}`` where the folder stands."""
        if self.variable:
            return tuple(args)
        if not self.name.startswith("--"):
            return (*args, "{data}")
        kept, skip = list[str](), False
        for text in args:
            if not skip and text.partition("=")[0] != self.name:
                kept.append(text)
            skip = not skip and text == self.name
        return (*kept, self.name, "{data}")


def data_facts(source: Source) -> DataFacts | None:
    """The first flag or argument that names data, else the first variable that does."""
    declared = [found for call in source.calls if (found := _argument(call, source)) is not None]
    read = [found for node in source.nodes if (found := _variable(node, source)) is not None]
    return next(iter((*sorted(declared, key=lambda each: not each.name.startswith("--")), *read)), None)


def _argument(call: ast.Call, source: Source) -> DataFacts | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "add_argument":
        return None
    names = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    found = next((name for name in names if name.lstrip("-").replace("-", "_").lower() in FLAGS), "")
    return DataFacts(found, source.where(call)) if found and not (found.startswith("-") and found[:2] != "--") else None


def _variable(node: ast.AST, source: Source) -> DataFacts | None:
    name = _asked(node)
    return DataFacts(name, source.where(node)) if name in VARIABLES else None


def _asked(node: ast.AST) -> str:
    """The name in ``os.environ["DATA_DIR"]``, ``os.environ.get("DATA_DIR")``, ``os.getenv("DATA_DIR")``."""
    name: ast.expr | None = None
    if isinstance(node, ast.Subscript) and last_name(node.value) == "environ":
        name = node.slice
    elif isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute | ast.Name):
        asked = last_name(node.func)
        owner = last_name(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        if asked == "getenv" or (asked in ("get", "setdefault") and owner == "environ"):
            name = node.args[0]
    return plain(name) or ""


_OF_OUTPUT = re.compile(r"(?:^|_)(LOG|OUT|OUTPUT|SAVE|CKPT|CHECKPOINT|WORK|RUN)S?_?(DIR|PATH|ROOT|FOLDER)$")


def output_variables(source: Source, come_to: Container[ast.Call]) -> tuple[str, ...]:
    """The variables of the environment that may say where it writes; ``come_to``: the calls that a run comes to."""
    asked = (_asked(node) for node in source.nodes if not isinstance(node, ast.Call) or node in come_to)
    return tuple(dict.fromkeys(name for name in asked if _OF_OUTPUT.search(name)))


def dataset_uri(wanted: str, data: DataFacts | None, args: Sequence[str]) -> str:
    """The dataset's uri: what was asked for, else the folder that the script is told of already; "" for none.

    A relative folder is left alone, because it may travel with the code.

    Raises:
        InputError: neither a uri nor a folder.
    """
    if "://" in wanted:
        from argosy.steps.store.opening import check_uri

        return check_uri(wanted, "--dataset")
    if wanted:
        folder = Path(wanted)
        if not folder.is_dir():
            raise InputError(f"--dataset {wanted!r}: no such folder; name one, or a store's prefix as s3://bucket/c4")
        return folder.resolve().as_uri()
    told = data.given(args) if data is not None else ""
    return Path(told).resolve().as_uri() if os.path.isabs(told) and Path(told).is_dir() else ""
