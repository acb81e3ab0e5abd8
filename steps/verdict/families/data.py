"""Checkpoints, samples, loaders and numbers."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.pattern import Pattern

PATTERNS = (
    Pattern(
        Cause.DATA_CORRUPT,
        r"Caught (\w+\.)*(UnpicklingError|EOFError|ReadError|BadZipFile|UnicodeDecodeError"
        r"|error) in DataLoader worker",
        "_pickle.UnpicklingError: Caught UnpicklingError in DataLoader worker process 3.",
    ),
    Pattern(
        Cause.CHECKPOINT_CORRUPT,
        r"PytorchStreamReader failed|failed finding central directory|not a ZIP archive"
        r"|unexpected EOF, expected \d+ more|Unable to load weights from pytorch checkpoint|checkpoint .*\b(is"
        r"|was|seems|be|may be) (corrupt|damaged|truncated)",
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
    ),
    Pattern(
        Cause.CHECKPOINT_CORRUPT,
        r"SafetensorError(?!: Error while serializing)|UnpicklingError|invalid load key|Ran out of input"
        r"|pickle data was truncated",
        "_pickle.UnpicklingError: invalid load key, '\\x00'.",
    ),
    Pattern(
        Cause.CHECKPOINT_CORRUPT,
        r"DataLossError.*(restored bytes|Unable to open table file|not an sstable|[Cc]heckpoint|[Tt]ensor ?bundle)",
        "DataLossError: Checksum does not match: stored 1669981049 vs. calculated on the restored bytes 3056795359",
    ),
    Pattern(
        Cause.CHECKPOINT_MISMATCH,
        r"Error\(s\) in loading state_dict|[Ss]ize mismatch (for|between saved) |Missing key\(s\) in state_dict"
        r"|missing keys? in state_dict|unexpected key .* in state_dict|Unexpected key\(s\)"
        r"|Trying to (load|set) a tensor of shape|copying a param with shape|ensure that the architectures match"
        r"|shapes of both tensors to match",
        "RuntimeError: Error(s) in loading state_dict for GPT:",
    ),
    Pattern(
        Cause.CHECKPOINT_MISMATCH,
        r"(?i)loaded state dict (contains|has) a (parameter group|different number)|missing optimizer state for"
        r"|checkpoint .*(does not match|mismatch)"
        r"|(checkpoint|saved|loaded|loading) .*(world|partition|dp|tp|parallel) ?(world )?(size|count|degree)s? .*"
        r"(match|differ|support|expect|but (the )?current)|loading a checkpoint for .* but .*size is"
        r"|^KeyError: '\w*state_dict'|is not a distributed checkpoint",
        "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
    ),
    Pattern(
        Cause.DATA_CORRUPT,
        r"UnidentifiedImageError|cannot identify image file|image file is truncated|broken data stream|DataLossError"
        r"|corrupted record|Invalid data found when processing input"
        r"|\((truncated file|file signature not found|bad object header)",
        "PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object at 0x7f>",
    ),
    Pattern(
        Cause.DATA_CORRUPT,
        r"ArrowInvalid|Parquet magic bytes|tarfile\.ReadError|zlib\.error|BadGzipFile|EOFError: Compressed file ended"
        r"|JSONDecodeError|unexpected end of data|Pickle data was truncated|File is not a zip file",
        "pyarrow.lib.ArrowInvalid: Parquet magic bytes not found in footer.",
    ),
    Pattern(
        Cause.DATALOADER_WORKER_KILLED,
        r"DataLoader worker (\(pid|.*(exited unexpectedly|killed by signal))|Unexpected [\w ]+ encountered in worker\."
        r"|DataLoader timed out after|Pin memory thread exited",
        "RuntimeError: DataLoader worker (pid(s) 1212) exited unexpectedly",
        Weight.GENERIC,
    ),
    Pattern(
        Cause.DATALOADER_WORKER_KILLED,
        r"background workers are no\b|BrokenProcessPool|process pool was terminated abruptly|TerminatedWorkerError"
        r"|worker process managed by the executor was unexpectedly terminated|(pool|loader) (workers?"
        r"|process(es)?)\b.* died",
        "RuntimeError: One or more background workers are no longer alive. Exiting.",
        Weight.GENERIC,
    ),
    Pattern(
        Cause.NUMERICS_NAN,
        r"(?i)(loss|outputs?|logits|activations?) (is|are|became|has become|went|=) (now )?"
        r"(nans?|inf(s|inite|inity)?)\b"
        r"|non-?finite (loss|grad)|NanLossDuringTraining"
        r"|(nan|inf) (loss|grad\w*) (detected|encountered|found)|gradients? (is|are|contains?) (nan|inf)"
        r"|diverged with loss = nan",
        "ValueError: loss is nan at step 812",
    ),
    Pattern(
        Cause.NUMERICS_NAN,
        r"(?i)returned nan values in its|loss scale already at minimum|loss scale .*at (its )?minimum",
        "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
    ),
    Pattern(
        Cause.NUMERICS_NAN,
        r"(?i)loss scale to:? (0(\.0*)?$|0?\.0*[1-9]|[\d.]+e-)",
        "WARNING: overflow detected, setting loss scale to: 0.0001220703125",
        Weight.HINT,  # a scale below one no longer keeps a number from overflowing, and a run may live with that
    ),
    Pattern(
        Cause.NUMERICS_NAN,
        r"FloatingPointError",
        "FloatingPointError: invalid value encountered in multiply",
    ),
    Pattern(
        Cause.NUMERICS_NAN,
        r"(?i)\bloss['\"]?\s*[:=]\s*['\"]?(tensor\()?nan\b",
        "{'loss': nan, 'grad_norm': nan, 'learning_rate': 2.0e-05, 'epoch': 0.3}",
        Weight.MESSENGER,
    ),
)
