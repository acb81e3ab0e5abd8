"""From endings, errors and pod facts to one cause with its evidence."""

from argosy.steps.verdict.judgement import judge
from argosy.steps.verdict.record import PodFact, Verdict, termination_line

__all__ = ["PodFact", "Verdict", "judge", "termination_line"]
