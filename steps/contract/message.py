"""What processes of a run say to each other: dataclasses that are JSON on the wire."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from functools import cache
from typing import Any, Self, get_args, get_type_hints


class Message:
    """JSON both ways; unknown keys are ignored so that old and new pods can talk. A field may hold other messages."""

    def to_json(self) -> bytes:
        """UTF-8 JSON object."""
        return json.dumps(asdict(self)).encode()  # type: ignore[call-overload]

    @classmethod
    def from_json(cls, raw: bytes | dict[str, Any]) -> Self:
        """Parse.

        Raises:
            ValueError: not JSON, or a required key is missing.
        """
        record = raw if isinstance(raw, dict) else json.loads(raw)
        try:
            given = {spec.name: record[spec.name] for spec in fields(cls) if spec.name in record}  # type: ignore[arg-type]
            for name, kind in _messages(cls).items():  # type: ignore[arg-type]
                if isinstance(held := given.get(name), list):
                    given[name] = [kind.from_json(each) for each in held]
                elif held is not None:
                    given[name] = kind.from_json(held)
            return cls(**given)
        except (TypeError, AttributeError) as error:
            raise ValueError(str(error)) from error


@cache
def _messages(cls: type[Message]) -> dict[str, type[Message]]:
    """The fields that hold a message, or a list of them."""
    inner = {name: (kind, *get_args(kind)) for name, kind in get_type_hints(cls).items()}
    return {
        name: each
        for name, kinds in inner.items()
        for each in kinds
        if isinstance(each, type) and issubclass(each, Message)
    }
