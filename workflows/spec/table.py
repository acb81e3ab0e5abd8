"""The base of every table of a run: frozen, no unknown fields, and errors a person can act on."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from argosy.steps.contract.errors import InputError
from argosy.workflows.spec.refusal import as_input_error


class Table(BaseModel):
    """One table of ``run.toml``.

    Raises:
        InputError: at construction, naming field, value, rule and remedy.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    def __init__(self, *positional: Any, **values: Any) -> None:
        """Each field by its name; InputError where one is wrong."""
        if positional:
            raise InputError(f"{type(self).__name__}({positional[0]!r}): fields are given by name, as in name='gpt'")
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise as_input_error(error, type(self)) from None

    def __hash__(self) -> int:
        # Tables hold dicts, of which pydantic's own would say that they are unhashable; equal ones may differ in order.
        return hash(json.dumps(self.model_dump(mode="json"), sort_keys=True))

    # pydantic calls a custom __init__ for nested tables too, which would report them without their place;
    # marked so, it validates them itself and the outermost table reports.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]
