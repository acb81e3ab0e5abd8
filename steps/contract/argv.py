"""Arguments of a step as a frozen dataclass that writes and reads its own argv.

The compiler fills the same class with Argo's ``{{...}}`` placeholders as whole values and calls
:meth:`StepArgs.to_argv`; the step calls :meth:`StepArgs.from_argv`. One definition, no shell in between.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, NoReturn, Self

from argosy.steps.contract.errors import InputError


def option(help_text: str, **kwargs: Any) -> Any:
    """A dataclass field with its ``--help`` text."""
    return field(metadata={"help": help_text}, **kwargs)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _read_bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither 'true' nor 'false'")
    return text == "true"


def _read_float(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return number


_READERS: dict[str, Any] = {"str": str, "int": int, "float": _read_float, "float | None": _read_float}


def _number(value: float) -> str:
    """The shorter of the texts that are read as ``value``."""
    return short if float(short := f"{value:g}") == value else repr(value)


@dataclass(frozen=True, kw_only=True)
class StepArgs:
    """Base of all step arguments: ``str``, ``int``, ``float``, ``float | None`` (None: left out), ``bool``
    ("true"/"false") and ``tuple[str, ...]``.
    """

    MODULE: ClassVar[str]
    """Module that runs the step: ``argosy.steps.snapshot``."""

    def to_argv(self) -> list[str]:
        """``["--flag=value", ...]``; defaults, empty strings and empty tuples are left out, tuples repeat the flag.

        ``--flag=value`` is one list element, so that a value that starts with a dash stays a value.
        """
        argv: list[str] = []
        for spec in fields(self):
            value = getattr(self, spec.name)
            if value == spec.default:
                continue
            if isinstance(value, tuple):
                argv += [f"{_flag(spec.name)}={item}" for item in value]
            elif isinstance(value, bool):
                argv.append(f"{_flag(spec.name)}={str(value).lower()}")
            elif isinstance(value, float):
                argv.append(f"{_flag(spec.name)}={_number(value)}")
            elif value != "":
                argv.append(f"{_flag(spec.name)}={value}")
        return argv

    @classmethod
    def command(cls) -> list[str]:
        """The container's command; ``python`` is found on PATH."""
        return ["python", "-m", cls.MODULE]

    @classmethod
    def from_argv(cls, argv: list[str] | None = None) -> Self:
        """Parse; ``--help`` prints usage and exits.

        Raises:
            InputError: a wrong, missing or empty argument.
        """
        parser = _Parser(prog=f"python -m {cls.MODULE}", description=cls.__doc__, allow_abbrev=False)
        for spec in fields(cls):
            _add(parser, spec)
        given = {name: value for name, value in vars(parser.parse_args(argv)).items() if value is not None}
        required = [spec.name for spec in fields(cls) if spec.default is MISSING and spec.name not in given]
        if required:
            # An empty value is left out of argv, so a required flag that is absent was given as "".
            parser.error("missing or empty: " + ", ".join(_flag(name) for name in required))
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})


class _Parser(argparse.ArgumentParser):
    """Says what is wrong to whoever called, so that it also reaches the termination message."""

    def error(self, message: str) -> NoReturn:
        if "unrecognized arguments" in message:
            # Nobody types these: whoever compiled the run knew them.
            message += (
                "; the run was compiled by another version of argosy than this image holds: take the same for both"
            )
        raise InputError(f"{message}; {self.prog} --help lists the arguments")


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
