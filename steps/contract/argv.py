"""Arguments of a step as a frozen dataclass that writes and reads its own argv.

The compiler fills the same class with Argo's ``{{...}}`` placeholders as whole values and calls
:meth:`StepArgs.to_argv`; the step calls :meth:`StepArgs.from_argv`. One definition, no shell in between.
"""

from __future__ import annotations

import argparse
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, Self


def option(help_text: str, **kwargs: Any) -> Any:
    """A dataclass field with its ``--help`` text."""
    return field(metadata={"help": help_text}, **kwargs)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _read_bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither 'true' nor 'false'")
    return text == "true"


_READERS: dict[str, Any] = {"str": str, "int": int, "float": float}


@dataclass(frozen=True, kw_only=True)
class StepArgs:
    """Base of all step arguments: ``str``, ``int``, ``float``, ``bool`` ("true"/"false") and ``tuple[str, ...]``."""

    MODULE: ClassVar[str]
    """Module that runs the step: ``argosy.steps.snapshot``."""

    def to_argv(self) -> list[str]:
        """``["--flag=value", ...]``; empty strings and empty tuples are left out, tuples repeat the flag.

        ``--flag=value`` is one list element, so that a value that starts with a dash stays a value.
        """
        argv: list[str] = []
        for spec in fields(self):
            value = getattr(self, spec.name)
            if isinstance(value, tuple):
                argv += [f"{_flag(spec.name)}={item}" for item in value]
            elif isinstance(value, bool):
                argv.append(f"{_flag(spec.name)}={str(value).lower()}")
            elif value != "":
                argv.append(f"{_flag(spec.name)}={value}")
        return argv

    @classmethod
    def command(cls) -> list[str]:
        """The container's command; ``python`` is found on PATH."""
        return ["python", "-m", cls.MODULE]

    @classmethod
    def from_argv(cls, argv: list[str] | None = None) -> Self:
        """Parse; on a wrong argument prints usage and exits 2, as argparse does."""
        parser = argparse.ArgumentParser(prog=f"python -m {cls.MODULE}", description=cls.__doc__, allow_abbrev=False)
        for spec in fields(cls):
            _add(parser, spec)
        given = {name: value for name, value in vars(parser.parse_args(argv)).items() if value is not None}
        required = [spec.name for spec in fields(cls) if spec.default is MISSING and spec.name not in given]
        if required:
            # An empty value is left out of argv, so a required flag that is absent was given as "".
            parser.error("missing or empty: " + ", ".join(_flag(name) for name in required))
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})


def _add(parser: argparse.ArgumentParser, spec: Field[Any]) -> None:
    kind = str(spec.type)
    text = spec.metadata.get("help", "")
    flag = _flag(spec.name)
    if kind.startswith("tuple"):
        parser.add_argument(flag, dest=spec.name, action="append", default=None, help=text)
    elif kind == "bool":
        parser.add_argument(flag, dest=spec.name, type=_read_bool, default=None, help=text, metavar="true|false")
    else:
        parser.add_argument(flag, dest=spec.name, type=_READERS[kind], default=None, help=text)
