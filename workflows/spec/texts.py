"""Kinds of text in a run, and what each must not contain.

Every string of a run ends in YAML that Argo and the kubelet rewrite: ``{{...}}`` is a placeholder to Argo,
``$(...)`` a variable to the kubelet and ``$$`` its sign for one dollar. A value that holds one of them would not
arrive as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from argosy.steps.contract.errors import InputError
from argosy.steps.store.opening import check_uri
from argosy.workflows.spec.refusal import Refusal

_REWRITTEN = {"{{": "Argo", "}}": "Argo", "$(": "the kubelet", "$$": "the kubelet"}
_DNS = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_COMMAND = re.compile(r"(\S*/)?(python[\d.]*|torchrun|accelerate|deepspeed|bash|sh)\s")
_OF_IMAGES = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"([A-Za-z0-9][A-Za-z0-9.-]*(:\d+)?/)?{_OF_IMAGES}(/{_OF_IMAGES})*(:\w[\w.-]{{0,127}})?(@sha256:[0-9a-f]{{64}})?",
    re.A,
)
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?")
_SCALE = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
LARGEST_COUNT, LONGEST_SECONDS = 10**15, 10 * 366 * 24 * 3600
"""What is more is a slip of the finger, and some program on the way (Go, JSON) would read another number."""
MOST_CORES, LEAST_MEMORY, MOST_MEMORY = 65_536, 1 << 20, 1 << 50
_SCALE |= {unit: 1024.0**power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), 1)}


def check_literal(text: str) -> str:
    """The text, if nothing between here and the process rewrites it.

    Raises:
        Refusal: it holds ``{{``, ``}}``, ``$(``, ``$$``, a NUL or a lone surrogate.
    """
    for mark, who in _REWRITTEN.items():
        if mark in text:
            raise Refusal(f"must not contain '{mark}' ({who} would expand it)", "pass it in a file or build it there")
    if "\0" in text:
        raise Refusal("must not contain a NUL character", "remove it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refusal("is not valid Unicode", "write it as UTF-8") from None
    return text


def check_line(text: str) -> str:
    """:func:`check_literal`, and no line break."""
    if "\n" in text or "\r" in text:
        raise Refusal("must be one line", "pass longer text in a file")
    return check_literal(text)


def _pattern(rule: re.Pattern[str], what: str, remedy: str, longest: int = 253) -> AfterValidator:
    def check(text: str) -> str:
        if text and (len(text) > longest or not rule.fullmatch(text)):
            raise Refusal(f"must be {what}", remedy)
        return text

    return AfterValidator(check)


def check_relative(text: str) -> str:
    """:func:`check_line`, and a path that stays inside the code folder."""
    path = PurePosixPath(text)
    if text and (path.is_absolute() or ".." in path.parts or text.startswith(("-", "~"))):
        raise Refusal("must be a path inside the code folder, without '..'", "write it relative to the code folder")
    return check_line(text)


def _check_glob(text: str) -> str:
    try:
        return check_relative(text)
    except Refusal:
        raise Refusal("must be a glob below checkpoint.path, without '..'", "write it relative to that") from None


def _check_script(text: str) -> str:
    if _COMMAND.match(text):
        raise Refusal("is a command, not a file", 'write script = "train.py", and its arguments in args')
    if text.endswith("/"):
        raise Refusal("is a folder", "name the script in it")
    if text.startswith("/"):
        if ".." in PurePosixPath(text).parts:
            raise Refusal("must not hold '..'", "write the path that the image has")
        return check_line(text)
    return check_relative(text)


def _check_uri(text: str) -> str:
    try:
        return check_line(check_uri(text)) if text else text
    except InputError as error:
        rule, _, remedy = str(error).partition(": ")[2].partition("; ")
        raise Refusal(rule, remedy) from None


def _check_listing(text: str) -> str:
    if "://" in text:
        return _check_uri(text)
    if text.startswith("/") or ".." in text.split("/") or text.endswith("/"):
        raise Refusal("must be the uri of an object, or its key below dataset.uri", "write s3://bucket/key or key")
    return check_line(text)


def _number_as_text(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:g}"
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _check_quantity(text: str) -> str:
    if not _QUANTITY.fullmatch(text) or quantity(text) <= 0:
        raise Refusal("must be a Kubernetes quantity above zero", 'write for example "500m", "4", "16Gi"')
    return text


def _check_cores(text: str) -> str:
    if (text[-1:].isalpha() and text[-1] not in "mk") or quantity(text) > MOST_CORES:
        raise Refusal(f"must be a number of cores, at most {MOST_CORES}", 'write for example "500m" or "4"')
    return text


def _check_bytes(text: str) -> str:
    if not LEAST_MEMORY <= quantity(text) <= MOST_MEMORY:
        raise Refusal("must be between 1Mi and 1Pi: no container starts with less, no node has more", 'write "16Gi"')
    return text


def _at_most(largest: int) -> Callable[[int], int]:
    def check(number: int) -> int:
        if number > largest:
            raise Refusal(f"must be at most {largest}", "write a smaller number")
        return number

    return check


def quantity(text: str) -> float:
    """A Kubernetes quantity as a number: cores, or bytes."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no Kubernetes quantity")
    return float(found[1]) * _SCALE[found[2] or ""]


Line = Annotated[str, AfterValidator(check_line)]
"""One line that nothing rewrites."""
RunName = Annotated[
    str,
    _pattern(re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?"), "a DNS label of at most 40", "use a-z, 0-9 and '-'", 40),
    Field(min_length=1),
]
KubeName = Annotated[str, _pattern(_DNS, "a Kubernetes name", "use lower-case letters, digits, '-' and '.'")]
QueueName = Annotated[
    str, _pattern(_DNS, "a Kubernetes name of at most 63", "use lower-case letters, digits, '-' and '.'", 63)
]
"""A name that is also the value of a label."""
Image = Annotated[
    str,
    _pattern(_IMAGE, "an image reference", "write registry/name:tag or name@sha256:..., the name in lower case", 512),
    Field(min_length=1),
]
RelativePath = Annotated[str, AfterValidator(check_relative)]
CheckpointGlob = Annotated[str, AfterValidator(_check_glob)]
ScriptPath = Annotated[str, AfterValidator(_check_script)]
"""Relative to the code folder; absolute in an image that holds the code."""
ModuleName = Annotated[
    str, _pattern(re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.A), "a dotted module name", "write pkg.module")
]
StoreUri = Annotated[str, AfterValidator(_check_uri)]
"""Checked by :func:`argosy.steps.store.opening.check_uri`; trailing slashes are removed."""
ListingName = Annotated[str, AfterValidator(_check_listing)]
"""An object: its whole uri, or a key below another uri."""
Quantity = Annotated[str, BeforeValidator(_number_as_text), AfterValidator(_check_quantity)]
Cores = Annotated[Quantity, AfterValidator(_check_cores)]
Bytes = Annotated[Quantity, AfterValidator(_check_bytes)]
"""Of a node's memory."""
Digest = Annotated[
    str, _pattern(re.compile(r"[0-9a-f]{64}"), "64 hex digits (a SHA-256)", "copy it from the snapshot's output")
]
LabelKey = Annotated[
    str,
    _pattern(
        re.compile(r"([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?", re.A),
        "a Kubernetes label key",
        "write name or domain/name",
        317,
    ),
]
NamedLabel = Annotated[LabelKey, Field(min_length=1)]
"""A key of a table of labels; alone a label may be left out."""
LabelValue = Annotated[
    str,
    _pattern(
        re.compile(r"[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?", re.A),
        "a Kubernetes label value",
        "use at most 63 letters, digits, '-', '_' and '.'",
        63,
    ),
]
WholeNumber = Annotated[int, Field(strict=True), AfterValidator(_at_most(LARGEST_COUNT))]
Seconds = Annotated[int, Field(strict=True), AfterValidator(_at_most(LONGEST_SECONDS))]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
