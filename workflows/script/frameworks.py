"""Libraries that save where a setting of theirs says, in code that a script does not show."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.workflows.script.source import Source, last_name
from argosy.workflows.script.values import Values


@dataclass(frozen=True)
class Framework:
    """``calls``: what a script that trains with it calls; ``setting``: what names the folder, ``default``: else.

    ``say``: the arguments that name it. ``resume_args``: where the library itself declares the flag.
    ``resumes``: "itself", where it looks for its newest checkpoint; "variable", where a flag decides.
    """

    library: str
    roots: frozenset[str]
    calls: frozenset[str]
    setting: str
    default: str | None
    say: str
    include: tuple[str, ...] = ()
    unit: tuple[str, ...] = ()
    resume_args: tuple[str, ...] = ()
    resumes: str = "variable"


_ALL = (
    Framework(
        library="mmengine",
        roots=frozenset({"mmengine", "mmcv"}),
        calls=frozenset({"fromfile"}),
        setting="work_dir",
        default=None,
        say="CONFIG --work-dir out",
        include=("*.pth",),
    ),
    Framework(
        library="detectron2",
        roots=frozenset({"detectron2"}),
        calls=frozenset({"default_argument_parser"}),
        setting="OUTPUT_DIR",
        default="output",
        say="--config-file CONFIG OUTPUT_DIR out",
        include=("*.pth", "last_checkpoint"),
        resume_args=("--resume",),
    ),
    Framework(
        library="fairseq",
        roots=frozenset({"fairseq"}),
        calls=frozenset({"get_training_parser"}),
        setting="save_dir",
        default="checkpoints",
        say="DATA --save-dir out",
        include=("checkpoint*.pt",),
        resumes="itself",
    ),
    Framework(
        library="speechbrain",
        roots=frozenset({"speechbrain"}),
        calls=frozenset({"load_hyperpyyaml"}),
        setting="save_folder",
        default=None,
        say="hparams/train.yaml --output_folder out",
        unit=("CKPT+*",),
        resumes="itself",
    ),
)


def framework_of(source: Source, values: Values) -> tuple[Framework, str, str | None] | None:
    """The library that saves, where it is called, and the folder as it is now (None: not known)."""
    for each in (each for each in _ALL if each.roots & source.roots):
        call = next((call for call in source.calls if last_name(call.func) in each.calls), None)
        if call is not None:
            folder = values.conditions.flag(each.setting) or each.default
            return each, source.where(call), folder if folder and "*" not in folder else None
    return None
