"""Checkpoints, samples, loaders and numbers."""

from argosy.steps.contract.causes import Cause
from argosy.steps.verdict.pattern import Pattern, Weight

PATTERNS = (
    Pattern(
        Cause.CHECKPOINT_CORRUPT,
        r"PytorchStreamReader failed|failed finding central directory|not a ZIP archive",
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
    ),
    Pattern(
        Cause.CHECKPOINT_CORRUPT,
        r"SafetensorError|UnpicklingError|invalid load key|Ran out of input",
        "_pickle.UnpicklingError: invalid load key, '\\x00'.",
    ),
    Pattern(
        Cause.CHECKPOINT_MISMATCH,
        r"Error\(s\) in loading state_dict|size mismatch for |Missing key\(s\) in state_dict|Unexpected key\(s\)",
        "RuntimeError: Error(s) in loading state_dict for GPT:",
    ),
    Pattern(
        Cause.CHECKPOINT_MISMATCH,
        r"loaded state dict (contains|has) a (parameter group|different number)",
        "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
    ),
    Pattern(
        Cause.DATA_CORRUPT,
        r"UnidentifiedImageError|cannot identify image file|image file is truncated|broken data stream",
        "PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object at 0x7f>",
    ),
    Pattern(
        Cause.DATA_CORRUPT,
        r"ArrowInvalid|Parquet magic bytes|tarfile\.ReadError|zlib\.error|BadGzipFile|EOFError: Compressed file ended"
        r"|JSONDecodeError",
        "pyarrow.lib.ArrowInvalid: Parquet magic bytes not found in footer.",
    ),
    Pattern(
        Cause.DATALOADER_WORKER_KILLED,
        r"DataLoader worker .*(exited unexpectedly|killed by signal)",
        "RuntimeError: DataLoader worker (pid(s) 1212) exited unexpectedly",
        Weight.GENERIC,
    ),
    Pattern(
        Cause.NUMERICS_NAN,
        r"(?i)loss (is|became|has become|went) (now )?(nan|inf)|non-?finite (loss|grad)"
        r"|(nan|inf) (loss|grad\w*) detected",
        "ValueError: loss is nan at step 812",
    ),
    Pattern(
        Cause.NUMERICS_NAN,
        r"returned nan values in its|loss scale already at minimum|loss scale .*at (its )?minimum",
        "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
    ),
    Pattern(
        Cause.NUMERICS_NAN,
        r"FloatingPointError",
        "FloatingPointError: invalid value encountered in multiply",
    ),
)
