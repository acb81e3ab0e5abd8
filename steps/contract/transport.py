"""What a gang's ranks are expected to talk over: written at compile time, compared in the pod with NCCL's log."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Final, Self

from argosy.steps.contract.errors import InputError

MNNVL: Final = "MNNVL"
"""``network`` of nodes that NVLink joins: their channels say ``via P2P/MNNVL`` and no ``via NET/…``."""
_KINDS: Final[dict[str, tuple[type, ...]]] = {"str": (str,), "int": (int,), "bool": (bool,), "float": (int, float)}


@dataclass(frozen=True, slots=True)
class ExpectedTransport:
    """The ``[expect]`` of a fabric profile; a field's empty value says nothing and is not compared."""

    network: str
    """As NCCL prints it after ``Using network`` and ``via NET/``: IB, Socket, Libfabric, gIB, FasTrak,
    GPUDirectTCPX_v7; or :data:`MNNVL`. Empty: nothing leaves the node."""
    gdr: bool
    """Whether the channels between nodes must say ``/GDRDMA``; False: not compared."""
    nics: int
    """Network devices per pod as NCCL counts them, count (aws-ofi-nccl bundles the 32 adapters of a p5 into 8);
    0: not stated."""
    nic_gbps: int
    """Rate of each such device, Gbit/s; 0: not stated."""
    nvls: bool
    """Whether NVLink SHARP must be in use within a node; False: not compared."""
    busbw_floor_gbs: float
    """All_reduce bus bandwidth (the 8 to 16 GiB row) below which something is wrong, GB/s; 0: not stated."""
    profile: str
    """Name of the fabric profile that says so."""

    def to_json(self) -> str:
        """One line of ASCII JSON, keys sorted."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse; unknown keys are ignored so that old pods read what newer compilers write.

        Raises:
            InputError: not a JSON object, or a field is missing or of another type.
        """
        try:
            record = json.loads(text)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise InputError(f"expected-transport = {text[:80]!r}: a JSON object is wanted; compile the run again")
        for spec in fields(cls):
            value, kinds = record.get(spec.name), _KINDS[str(spec.type)]
            if not isinstance(value, kinds) or isinstance(value, bool) != (bool in kinds):
                wanted = "missing" if spec.name not in record else f"{value!r} is no {spec.type}"
                raise InputError(f"expected-transport: {spec.name}: {wanted}; compile the run again")
        return cls(**{spec.name: record[spec.name] for spec in fields(cls)})
