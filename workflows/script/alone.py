"""Whether each rank of a script would train by itself: neither it nor what it imports asks for a rank."""

from __future__ import annotations

import ast
import re
import sys
from typing import Final

from argosy.workflows.script.source import MOST_MODULES, Source, last_name

_PLAIN: Final = frozenset(
    (
        *("torch", "torchvision", "torchaudio", "numpy", "pandas", "scipy", "sklearn", "matplotlib", "PIL", "cv2"),
        *("tqdm", "yaml", "click", "typer", "fire", "rich", "omegaconf", "requests", "einops", "safetensors"),
        *("tensorboard", "tensorboardX", "wandb", "tokenizers", "tiktoken", "sentencepiece", "datasets", "h5py"),
    )
)
"""Packages that make no group of ranks for who uses them, nor anything by its name, as hydra does."""
_OF_ARGOSY: Final = frozenset(("argosy.Checkpointer", "argosy.report", "argosy.skips"))
_OF_RANKS: Final = re.compile(
    r"(?i)rank|world_?size|distributed|^dist$|MASTER_ADDR|TF_CONFIG|^WORKER_|ARGOSY_|PROCID|COMPLETION_INDEX"
)
_ELSEWHERE: Final = re.compile(
    r"subprocess\.|asyncio\.create_subprocess|os\.(system|popen|exec|spawn|posix_spawn)|runpy\.|pkgutil\."
    r"|importlib\.(import_module|util\.|metadata\.entry_points)|__import__$|exec$"
)
"""What is called to have something run that is named while the script runs."""


def told(ranks: int) -> str:
    """What that means for a gang of so many ranks."""
    return (
        f"asks for no rank: each of the {ranks} ranks trains by itself, and all write the same files; -j 1x1 is enough"
    )


def trains_alone(source: Source) -> bool:
    """Of what is not known it is not said."""
    read = len(source.paths) < MOST_MODULES and all(_is_plain(source, whole) for whole in source.imports.values())
    return (
        read
        and not any(_OF_RANKS.search(word) for word in map(_word, source.nodes))
        and not any(_ELSEWHERE.match(source.origin(call.func) or ast.unparse(call.func)) for call in source.calls)
    )


def _is_plain(source: Source, whole: str) -> bool:
    top = whole.partition(".")[0]
    if top == "argosy":
        return whole in _OF_ARGOSY
    known = top in sys.stdlib_module_names or top in _PLAIN
    return not _OF_RANKS.search(whole) and (known or source.found(source.roots, [top]) is not None)


def _word(node: ast.AST) -> str:
    """What a name, an option's text or an import says."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) and "\n" not in node.value else ""
    return last_name(node) if isinstance(node, ast.Name | ast.Attribute) else getattr(node, "arg", "") or ""
