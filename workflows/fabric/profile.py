"""The form of a fabric profile: facts, each with its reason and its source, under conditions on the parameters.

In every text ``{name}`` stands for a parameter, or for what a choice of one carries. A variable, a resource or a mark
whose text names an empty one is left out. ``docs/fabrics.md`` describes the form for those who write their own.
"""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

OWN_VOLUMES: Final = ("shm", "storage", "cache", "data", "workspace", "tmp")
"""Names of the volumes that every pod of a gang has."""
SECTIONS: Final = (
    "env",
    "refused",
    "resources",
    "labels",
    "annotations",
    "volumes",
    "sidecars",
    "pod",
    "security",
    "shm",
    "expect",
    "notes",
)

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9-]*$", max_length=63)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
_KEY = r"([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
Key = Annotated[str, Field(pattern=rf"^({_KEY}|\{{[a-z_]+\}})$", max_length=317)]


class Part(BaseModel):
    """Frozen, and without unknown fields."""

    # Built when a profile is read: most runs have none.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Source(Part):
    """Where a fact was read, and when."""

    url: Annotated[str, Field(pattern=r"^https://\S+$")]
    date: datetime.date


class Fact(Part):
    """What a profile sets: why, by whose word, and under which choice of parameters."""

    why: str = ""
    source: str = ""
    """A key of the profile's ``sources``."""
    when: dict[Word, tuple[str, ...]] = {}
    """Parameter -> values with which the fact holds; ``*``: any but the empty one."""


class Parameter(Fact):
    """What only the user knows; a choice may carry further values."""

    name: Word
    about: str
    kind: Literal["word", "count", "name", "resource", "image", "adapters"] = "word"
    """A word; a whole number from 1; an object's name; a resource (``domain/name``); an image; NCCL_IB_HCA."""
    required: bool = False
    default: str = ""
    choices: dict[str, dict[Word, str]] = {}
    """Value -> what else is known with it; empty: any of its kind."""


class Setting(Fact):
    """An environment variable of the ranks."""

    name: Variable
    value: str
    must: Literal["", "equal", "contain"] = ""
    """``equal``: another value of the user's is refused. ``contain``: the user's list has to hold this entry."""


class Prohibition(Fact):
    """A variable the user must not set."""

    name: Variable
    values: tuple[str, ...] = ()
    """Which values; empty: any."""


class Amount(Fact):
    """So much of a resource, as request and as limit."""

    name: Key
    value: str


class Mark(Fact):
    """A label or an annotation of the pod."""

    name: Key
    value: str


class Folder(Fact):
    """A volume as Kubernetes has it, and where the ranks see it (empty ``mount``: nowhere)."""

    name: Name
    volume: Annotated[dict[str, Any], Field(min_length=1, max_length=1)]
    mount: dict[str, Any] = {}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.name in OWN_VOLUMES:
            raise ValueError(f"{self.name!r} is the name of a volume that every pod has")
        path = str(self.mount.get("mountPath", "/x"))
        if path == "/dev/shm" or path == "/argosy" or path.startswith("/argosy/") or not path.startswith("/"):
            raise ValueError(f"{path!r} is no place to mount at")
        return self


class Sidecar(Fact):
    """A container beside the ranks that runs as long as they do; ``once``: that ends before they start."""

    name: Name
    container: dict[str, Any]
    once: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.name == "main" or not self.container.get("image") or "name" in self.container:
            raise ValueError("needs an image, a name other than 'main', and no second name")
        return self


class PodField(Fact):
    """A field of the pod's spec."""

    name: Literal["hostNetwork", "dnsPolicy", "resourceClaims", "affinity"]
    value: Any


class Right(Fact):
    """A right of the ranks' container that Pod Security "restricted" does not give."""

    name: Literal["capability", "root", "privileged"]
    value: str = "yes"


class Size(Fact):
    """Size of ``/dev/shm``, where the user gives none."""

    value: str


class Expectation(Fact):
    """A field of :class:`argosy.steps.contract.transport.ExpectedTransport`."""

    name: Literal["network", "gdr", "nics", "nic_gbps", "nvls", "busbw_floor_gbs"]
    value: bool | int | float | str

    @model_validator(mode="after")
    def _check(self) -> Self:
        if isinstance(self.value, bool) != (self.name in ("gdr", "nvls")):
            raise ValueError(f"{self.name} = {self.value!r}: gdr and nvls are true or false, the others are not")
        return self


class Note(Fact):
    """What the profile cannot do for the user."""

    text: str


class Profile(Part):
    """One fabric."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=40)]
    about: str
    proven: str = "not run on such hardware here"
    one_node: bool = False
    """Cannot join more than one node."""
    gpus: str = ""
    """GPUs of the node that the counts are for; may be a placeholder. Empty: any number."""
    includes: tuple[str, ...] = ()
    """Other profiles, or parts of ours, whose facts come first."""
    sources: dict[str, Source] = {}
    parameters: tuple[Parameter, ...] = ()
    env: tuple[Setting, ...] = ()
    refused: tuple[Prohibition, ...] = ()
    resources: tuple[Amount, ...] = ()
    labels: tuple[Mark, ...] = ()
    annotations: tuple[Mark, ...] = ()
    volumes: tuple[Folder, ...] = ()
    sidecars: tuple[Sidecar, ...] = ()
    pod: tuple[PodField, ...] = ()
    security: tuple[Right, ...] = ()
    shm: tuple[Size, ...] = ()
    expect: tuple[Expectation, ...] = ()
    notes: tuple[Note, ...] = ()

    def facts(self) -> list[Fact]:
        """All of them, in the order of the form."""
        sections: list[tuple[Fact, ...]] = [self.parameters, *(getattr(self, name) for name in SECTIONS)]
        return [fact for section in sections for fact in section]
