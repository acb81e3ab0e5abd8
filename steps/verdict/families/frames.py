"""Whose code raised: libraries whose frames say what an exception of theirs is about, whatever its words."""

import re
from functools import cache

from argosy.steps.contract.causes import Cause

_LIB = r"(site|dist)-packages/(.*/)?"

FRAMES: tuple[tuple[Cause, str], ...] = (
    (
        Cause.S3_THROTTLE,
        _LIB + r"(botocore|boto3?|aiobotocore|s3fs|s3transfer|s3torchconnector|obstore|gcsfs|adlfs"
        r"|google/cloud/storage|google/resumable_media|smart_open|minio)/",
    ),
    (
        Cause.HUB_NETWORK,
        _LIB + r"(huggingface_hub|urllib3|requests|httpx|httpcore|aiohttp|wandb/(apis|sdk)|mlflow"
        r"|modelscope/hub)/|datasets/utils/(file_utils|_http)|/urllib/request\.py|/http/client\.py|gdown/",
    ),
    (
        Cause.DISK_FULL,
        r"torch/serialization\.py.* in _?(save|__exit__|write_\w+)\b|/logging/__init__\.py.* in emit"
        r"|tensorboard\S*writer\.py|/shutil\.py.* in copy\w*|in _?save_checkpoint\b"
        r"|in (save_pretrained|makedirs)\b",
    ),
    (
        Cause.CHECKPOINT_CORRUPT,
        r"torch/serialization\.py.* in (load|_load|_legacy_load|persistent_load|load_\w+"
        r"|_set_from_file|_open_zipfile_reader)\b|safetensors/.* in \w*load\w*",
    ),
    (
        Cause.CHECKPOINT_MISMATCH,
        r"checkpoint.*(load|restor)|planner\.py.* in \w*load|in (load_(checkpoint|state_dict)|restore_\w+)\b"
        r"|optim/\S+\.py.* in load_state_dict",
    ),
    (
        Cause.SHM_EXHAUSTED,
        r"torch/multiprocessing/reductions\.py|/multiprocessing/(shared_memory|heap|synchronize)\.py|pandarallel/core\.py",
    ),
    (
        Cause.DATA_CORRUPT,
        _LIB + r"(PIL|cv2|pyarrow|h5py|zarr|decord|av|soundfile|librosa|webdataset|wids|torchaudio|imageio"
        r"|streaming/base)/|pyarrow/|/(tarfile|zipfile|gzip|lzma|bz2|json/decoder|csv)\.py",
    ),
    (Cause.IMPORT_ERROR, r"importlib[./_]|/ctypes/__init__\.py|torch/utils/cpp_extension\.py|in _import_module\b"),
    (Cause.CUDA_DRIVER, r"torch/cuda/__init__\.py.* in (_lazy_init|set_device|_lazy_call)|pynvml"),
    (Cause.RENDEZVOUS_CONNECT, r"torch/distributed/(rendezvous|elastic/rendezvous/)|in _?create_\w*store\b"),
    (
        Cause.LAUNCHER_USAGE,
        r"torch/distributed/(run|launch)\.py.* in (determine_\w+|config_from_args|parse_\w+|get_\w+)"
        r"|(python[\d.]*|[Ll]ib)/argparse\.py.* in (_?parse_\w+|_get_values?|_check_value|error|exit)"
        r"|/runpy\.py.* in _get_(module|code)\w*",
    ),
)
"""(cause, a regular expression over one frame); of the innermost frame that a row knows, the first row."""

NAMES: tuple[tuple[Cause, str], ...] = (
    (
        Cause.S3_THROTTLE,
        r"(botocore|boto3|s3transfer|aiobotocore|s3fs|gcsfs|adlfs|minio|google\.(api_core|cloud|auth)|azure\.core)\.",
    ),
    (
        Cause.HUB_NETWORK,
        r"(requests|urllib3?|http\.client|httpx|httpcore|aiohttp|huggingface_hub|wandb|mlflow|neptune|comet_ml)\.",
    ),
    (Cause.CHECKPOINT_CORRUPT, r"(safetensors\w*|_pickle|pickle)\."),
    (Cause.DATA_CORRUPT, r"(PIL|pyarrow|zlib|lzma|tarfile|zipfile|gzip|h5py|decord|av|soundfile|webdataset)\."),
    (Cause.RENDEZVOUS_CONNECT, r"torch\.distributed\.(DistStoreError|DistNetworkError|elastic\.rendezvous)"),
)
"""(cause, a regular expression at the beginning of an exception's full name): the module that defines it."""

ADDRESSES = (
    (Cause.S3_THROTTLE, r"\b(s3a?|gs)://|://[\w.-]*(s3|minio|storage\.googleapis|blob\.core)[\w.-]*[:/]"),
    (Cause.HUB_NETWORK, r"https?://(?!\d+\.)[\w-]+\.\w"),
)
"""(cause, what its addresses look like); a bare number is a machine of the cluster."""

ELSEWHERE: dict[tuple[Cause, Cause], Cause] = {
    (Cause.DISK_FULL, Cause.SHM_EXHAUSTED): Cause.SHM_EXHAUSTED,
    (Cause.GPU_OOM, Cause.DISK_FULL): Cause.DISK_FULL,  # a status of "exhausted" names no resource
    (Cause.RENDEZVOUS_CONNECT, Cause.HUB_NETWORK): Cause.HUB_NETWORK,
    (Cause.RENDEZVOUS_CONNECT, Cause.S3_THROTTLE): Cause.S3_THROTTLE,
    (Cause.PEER_LOST, Cause.HUB_NETWORK): Cause.HUB_NETWORK,
    (Cause.PEER_LOST, Cause.S3_THROTTLE): Cause.S3_THROTTLE,
}
"""What the words of an operating system's error mean and whose frames raised it, to what it is there."""

WORDED = (Cause.NUMERICS_NAN, Cause.CHECKPOINT_CORRUPT, Cause.CHECKPOINT_MISMATCH, Cause.DATA_CORRUPT)
"""What a program finds out by itself, and says with an exception like any of its own."""

_STORE = (Cause.S3_ACCESS, Cause.S3_MISSING)
_SAYS = re.compile(r"^(\w+\.)*(Value|Assertion|FileNotFound)Error\b")
_OWN = re.compile(
    r"^(\w+\.)*(Type|Name|Attribute|Key|Index|Value|Assertion|ZeroDivision|\w*NotImplemented|UnboundLocal|Syntax"
    r"|Indentation|Recursion|Lookup|Unicode(Encode|Translate)?|Arithmetic|FileNotFound|FileExists|IsADirectory|NotADirectory"
    r"|Permission|\w*Config(uration)?)Error\b(?!.*\bOS error\b)"
    r"|^(\w+\.)*(OS|IO)Error: \[Errno 24\]"  # so many files are open at once because a program opened them
    # torch's and safetensors' words for a folder that is not there, and for one in a file's place
    r"|^RuntimeError: (Parent directory .* does not exist|\[enforce fail at inline_container.*\binvalid file name\b)"
    r"|^(\w+\.)*SafetensorError: Error while serializing: I/O error: .*\(os error (1|2|13|20|21)\)"
)
"""What a library says in such a class of the operating system's own answer is no mistake of the program."""

_OF_THE_MACHINE = re.compile(
    r"^(\w+\.)*(\w*Timeout(Error)?|timeout|Connection\w*Error|BlockingIOError|ChildProcessError|InterruptedError)\b"
    r"|^(\w+\.)*(OSError|IOError|error): \[Errno (?!(1|2|7|13|17|18|2[0-4]|36|39|40)\])"
)


def library_of(frame: str) -> Cause | None:
    """What an exception is about that was raised below this frame, None where the frame does not tell."""
    frame = frame.replace("\\", "/")
    return next((cause for cause, regex in _compiled() if regex.search(frame)), None)


def named_by(line: str) -> Cause | None:
    """What an exception is about by the module that defines it, None where that does not tell."""
    return next((cause for cause, regex in _names() if regex.match(line)), None)


def addressed_by(line: str) -> Cause | None:
    """Whose address a line shows, None without one."""
    return next((cause for cause, regex in ADDRESSES if re.search(regex, line)), None)


def about_name(line: str, topic: Cause | None) -> Cause | None:
    """What an exception is about by the module that defines it, or by its topic where that is the narrower one."""
    named = named_by(line)
    return topic if named is None or (named == Cause.S3_THROTTLE and topic in _STORE) else named


def may_be_about(line: str, cause: Cause | None) -> bool:
    """Whether the words of an exception may speak for a cause; a mistake in a program speaks for itself."""
    return cause is not None and (not is_of_the_program(line) or (_SAYS.match(line) is not None and cause in WORDED))


@cache
def _names() -> tuple[tuple[Cause, re.Pattern[str]], ...]:
    return tuple((cause, re.compile(regex)) for cause, regex in NAMES)


@cache
def _compiled() -> tuple[tuple[Cause, re.Pattern[str]], ...]:
    return tuple((cause, re.compile(regex)) for cause, regex in FRAMES)


def is_of_the_machine(line: str) -> bool:
    """Whether the exception that a line names is one that only a machine or a network raises, and no program."""
    return _OF_THE_MACHINE.match(line) is not None


def is_of_the_program(line: str) -> bool:
    """Whether the exception that a line names is one that a mistake in a program raises, and no machine or network."""
    return _OWN.match(line) is not None
