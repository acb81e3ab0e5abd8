"""Scripts with the real libraries that never heard of argosy, on the GPU, their ranks SIGKILLed at random instants.

The suite opaque-kills of ``make prove`` with the machine's own libraries; without a GPU that suite is what runs. Losses
of a GPU need not be equal from run to run to the last digit printed, so that differing ones are told and nothing more.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

from tests.gpu.case import Case, Part, Skipped
from tests.prove import opaque_kills
from tests.prove.unaware.style import STYLES

# Those that use a GPU where there is one.
NEEDS = {"HF Trainer 1x1": "transformers", "Lightning 1x1": "lightning", "Accelerate 1x1": "accelerate"}
SEED = 20261126


def killed(case: Case) -> None:
    if importlib.util.find_spec(NEEDS[case.name]) is None:
        raise Skipped(f"no {NEEDS[case.name]}")
    (style,) = (style for style in STYLES if style.name == case.name)
    python, kills = Path(sys.executable), opaque_kills.KILLS_PER_RUN
    reference = opaque_kills.uninterrupted(style, python, case.folder)
    case.say(f"{len(reference)} steps without argosy")
    chance = random.Random(f"{SEED}-{case.name}")
    found = opaque_kills.kill_some(style, python, case.folder, chance, kills, reference)
    case.figure("kills", found["kills"], bar=f"{kills}", held=found["kills"] == kills)
    case.figure("while saving", found["while saving"])
    case.figure("restored", found["restored"])
    wrong = {key: found[key] for key in ("resumed wrongly", "not from the newest", "left over", "exit")}
    case.figure("wrongs", str(wrong), bar="none", held=not any(wrong.values()))
    for what in ("wrong labels", "false words"):
        case.figure(what, found[what] or "none", bar="none", held=not found[what])
    case.figure("result kept", found["result kept"], bar="True", held=found["result kept"])
    case.figure("losses that differ from those of a run without argosy", found["losses that differ"])
    case.figure("of", found["losses compared"])


PART = Part(dict.fromkeys(NEEDS, killed), seconds=400, cpu=False, beside=frozenset(NEEDS))
