"""The base of every table of a run: frozen, no unknown fields, and errors a person can act on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from argosy.steps.contract.errors import InputError
from argosy.workflows.spec.refusal import as_input_error, shown


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

    def __setattr__(self, name: str, value: Any) -> None:
        raise InputError(
            f"{name} = {shown(value)}: a description does not change; make another: run.model_copy(update={{...}})"
        )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Another one, checked like the first; pydantic's own would take any value."""
        return type(self)(**{**self.model_dump(exclude_unset=True), **(update or {})})

    def __hash__(self) -> int:
        # Tables hold dicts, of which pydantic's own would say that they are unhashable; equal ones may differ in order.
        return hash(json.dumps(self.model_dump(mode="json"), sort_keys=True))

    # pydantic calls a custom __init__ for nested tables too, which would report them without their place;
    # marked so, it validates them itself and the outermost table reports.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]
