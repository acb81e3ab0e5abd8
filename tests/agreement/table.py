"""``python -m tests.agreement.table [NAME...]``: run the cases on the local engine and print who agrees with Argo."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from argosy.steps.contract.errors import InputError
from argosy.workflows.engine.api import RunOptions, run
from tests.agreement import answer
from tests.agreement.corpus import Case, every
from tests.agreement.record import load


def heard_here(case: Case) -> answer.Answer:
    """What the local engine makes of the case; ``refused`` when it says so before anything starts."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return answer.of_engine(run(case.yaml(), RunOptions(state_dir=Path(folder))))
        except InputError as error:
            return {"phase": "refused", "message": str(error), "nodes": {}}
        except Exception as error:
            return {"phase": "crashed", "message": f"{type(error).__name__}: {error}", "nodes": {}}


def judged(theirs: answer.Answer, ours: answer.Answer) -> tuple[str, list[str]]:
    """``agree``, ``refused`` or ``DISAGREE``, and in what they differ."""
    if ours["phase"] == "refused":
        return "agree" if answer.is_invalid(theirs) else "refused", [ours["message"]]
    found = answer.differences(theirs, ours)
    return "DISAGREE" if found else "agree", found


def verdicts(names: list[str], *, at_once: int = 8) -> Iterator[tuple[str, str, list[str]]]:
    """The verdict on each case, in the order given; the engine runs them in threads of this process."""
    answers, cases = load(), every()
    with ThreadPoolExecutor(at_once) as pool:
        heard = pool.map(lambda name: heard_here(cases[name]), names)
        for name, ours in zip(names, heard, strict=True):
            yield name, *judged(answers[name], ours)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases; all that were recorded without any")
    options = parser.parse_args()
    answers = load()
    counts: dict[str, int] = {}
    for name, verdict, found in verdicts(options.names or [each for each in every() if each in answers]):
        counts[verdict] = counts.get(verdict, 0) + 1
        if verdict != "agree":
            print(f"{verdict} {name}", *found, sep="\n    ", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
