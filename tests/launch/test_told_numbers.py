"""What a script reports may be NumPy's, torch's or nonsense: it ends no training."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy
import pytest

from argosy import report
from argosy.steps.contract import env

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"step": numpy.int64(3), "loss": numpy.float32(0.5)}, {"step": 3, "loss": 0.5}),
        ({"step": torch.tensor(3), "loss": torch.tensor([0.5]), "tokens": numpy.int64(7)}, {"loss": 0.5, "tokens": 7}),
        ({"step": 3, "loss": torch.ones(2)}, {"step": 3, "loss": "tensor([1., 1.])"}),
        ({"step": 3, "loss": {1, 2}}, {"loss": "{1, 2}"}),
    ],
)
def test_a_number_is_told_whoever_made_it(
    given: dict[str, Any], told: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    monkeypatch.setenv(env.PROGRESS_FD, str(writing))
    report(**given)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        record = json.loads(pipe.readline())
    assert told.items() <= record.items()
