"""What the tests of several families share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml


@pytest.fixture
def every_value() -> Callable[[str, str], list[str]]:
    """Manifests in which one value after the other is replaced by a piece of YAML."""

    def replaced(text: str, junk: str) -> list[str]:
        documents = list(yaml.safe_load_all(text))
        other = yaml.safe_load(junk)
        return [yaml.safe_dump_all(each) for each in _variants(documents, other)]

    return replaced


def _variants(value: Any, other: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key in value:
            yield {**value, key: other}
            for below in _variants(value[key], other):
                yield {**value, key: below}
    elif isinstance(value, list):
        for index in range(len(value)):
            for below in [other, *_variants(value[index], other)]:
                yield [*value[:index], below, *value[index + 1 :]]
