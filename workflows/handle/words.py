"""What the verbs refuse, in the words of Python: an argument is named as it is written there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from argosy.steps.contract.errors import InputError

_WORDS = (
    (r"^-p ([\w-]+)=", r"parameters['\1'] = "),
    (r"^-p '?([\w-]+)'?", r"parameters['\1']"),
    (r"^--output ", "path = "),
    (r"^--(follow|namespace)", r"\1"),
    (r"^--state-dir ", "state_dir = "),
    (r"^FOLDER ", "folder = "),
    (r"^CHECKPOINT ", "checkpoint = "),
    (r"^RUN(_ID)? ", "name = "),
    (r"^RUN_ID:", "name:"),
    (r"write --force$", "write 'true' or 'false'"),
    (r"over with --force$", "over with parameters={'force': 'true'}"),
    (r"example -p 'args=(.*)'$", r"example parameters={'args': '\1'}"),
    (r"with --state-dir$", "with state_dir"),
    (r"with --kubeconfig$", "with kubeconfig"),
    (r"pass --kubeconfig and --context$", "pass kubeconfig and context"),
    (r"namespace with -n$", "namespace with namespace=..."),
    (r"`argosy run .*? -j 2x1` (\(.*\)), or `.*` \(a cluster\)$", r"run(ranks=(2, 1)) \1, or submit()"),
)
"""What the command line says, and what stands for it here."""


@contextmanager
def in_python() -> Iterator[None]:
    """Around, or as a decorator of, what calls verbs."""
    try:
        yield
    except InputError as error:
        told = str(error)
        for said, here in _WORDS:
            told = re.sub(said, here, told)
        error.args = (told,)
        raise
