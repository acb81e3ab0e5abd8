"""What a step leaves: output parameters, a termination message, an exit code."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from argosy.steps.contract.argv import StepArgs
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.paths import resolve

OUTPUTS = "/argosy/outputs"
TERMINATION_LOG = "/dev/termination-log"
TERMINATION_BYTES = 1024
_TEXT_CHARACTERS = 800
_PLAIN = re.compile(r"[^A-Za-z0-9 _.,:;=/@+()#-]")
_READABLE = str.maketrans("{}[]", "()()", "'\"`$")
"""A name that lost its quotes or its dollar sign is still that name; with a ``_`` for each it is another."""

Args = TypeVar("Args", bound=StepArgs)


def output_path(name: str) -> str:
    """Path of an output parameter, as the pod sees it."""
    return f"{OUTPUTS}/{name}"


def write_output(name: str, value: str | int | float) -> None:
    """Set an output parameter (``valueFrom.path``); atomically, so that a kill leaves the old or the new value."""
    replace_text(output_path(name), str(value))


def replace_text(path: str, text: str) -> None:
    """Write a file of the pod, named as the pod sees it; whoever reads it finds the old or the new content."""
    target = resolve(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(target)


def write_termination(text: str) -> None:
    """Write the message that Kubernetes and ``lastRetry.message`` show; cut to 1 KiB of ASCII."""
    path: Path = resolve(TERMINATION_LOG)
    line = text.encode("ascii", "replace")[:TERMINATION_BYTES]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(line)
    except OSError as error:
        print(f"argosy: no termination message: {error}", file=sys.stderr)


def ending_line(exit_code: int, text: str, cause: str = "") -> str:
    """Termination message of a step that ended without a verdict.

    Argo substitutes it into templates, so the text keeps plain characters only: no quotes, braces or dollar signs.
    """
    fields = {"cause": cause} if cause else {}
    plain = _PLAIN.sub("_", " ".join(text.split()).translate(_READABLE))[:_TEXT_CHARACTERS]
    return json.dumps({**fields, "exit_code": exit_code, "message": plain}, separators=(",", ":"))


def step_main(args_class: type[Args], body: Callable[[Args], int | None], argv: list[str] | None = None) -> int:
    """Parse the arguments, run the step, and turn what happened into an exit code and a termination message.

    0 or ``body``'s own code; 2 for bad input; the cause's code for :class:`StepError`. Use as
    ``sys.exit(step_main(SnapshotArgs, snapshot))``.
    """
    try:
        return body(args_class.from_argv(argv)) or int(ExitCode.OK)
    except InputError as error:
        print(f"argosy: {error}", file=sys.stderr)
        write_termination(ending_line(int(ExitCode.USAGE), str(error)))
        return int(ExitCode.USAGE)
    except StepError as error:
        quote = f" [{error.quote}]" if error.quote and error.quote not in str(error) else ""
        print(f"argosy: {error.cause}: {error}{quote}", file=sys.stderr)
        write_termination(ending_line(int(error.code), str(error), str(error.cause)))
        return int(error.code)
    except KeyboardInterrupt:
        return 128 + int(signal.SIGINT)
    except Exception as error:
        # A mistake of ours: its traceback is in the log, and Argo shows what it was.
        write_termination(ending_line(1, f"{type(error).__name__}: {error}"))
        raise
