"""What a script spreads over ranks with, and who tells it which rank it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from argosy.workflows.script.flags import Flag
from argosy.workflows.script.source import Source, argument, last_name, plain
from argosy.workflows.script.values import Values

DISTRIBUTED = frozenset(
    {"init_process_group", "deepspeed", "Accelerator", "init_device_mesh", "Fabric", "DDPStrategy", "FSDPStrategy"}
)
_WRAPPERS = frozenset({"DistributedDataParallel", "DDP", "FullyShardedDataParallel", "FSDP", "fully_shard"})
_STARTS = re.compile(r"init_?(process|dist)|initialize_|launch|setup_(dist|ddp)|dist_|ddp_|local_rank|LOCAL_RANK")
_TOLD_BY_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE")


@dataclass(frozen=True)
class Spread:
    """What a script spreads over ranks with, and where; where it uses GPUs; whether it makes a group of ranks."""

    by: tuple[str, str] | None
    cuda: str | None
    group: bool


def spread(source: Source, values: Values) -> Spread:
    """What the names tell that it comes to."""
    names = list(_used(source, values))
    # A library's wrapper that nobody makes a group of ranks for is never come to.
    wrappers = _WRAPPERS if any(_STARTS.search(ast.unparse(node.func)) for node in source.calls) else ()
    by = next(((name, where) for name, where in names if name in (*DISTRIBUTED, *wrappers)), None)
    cuda = next((where for name, where in names if name in ("cuda", "nccl")), None)
    return Spread(by, cuda, any(name == "init_process_group" for name, _ in names))


def _used(source: Source, values: Values) -> Iterator[tuple[str, str]]:
    """Names that stand where the script comes to as its flags are."""
    for node in source.nodes:
        name = last_name(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        compared = any(isinstance(each, ast.Compare) for each in islice(source.above(node), 2))
        if (
            name in (*DISTRIBUTED, *_WRAPPERS, "cuda", "nccl")
            and not compared
            and not _is_alone(next(source.above(node), None), node)
            and values.conditions.runs(node) is not False
        ):
            yield name, source.where(node)


def _is_alone(call: ast.AST | None, function: ast.AST) -> bool:
    """Whether a group of one is made, where nobody has made another: ``init_process_group(world_size=1, rank=0)``."""
    own = isinstance(call, ast.Call) and call.func is function
    return own and plain(argument(call, "world_size")) == "1"  # type: ignore[arg-type]


def own_ranks(source: Source, values: Values) -> str:
    """Where the script starts its ranks, or is told of them by its own flags; "" where it reads what torchrun tells."""
    for node in source.nodes:
        if isinstance(node, ast.Compare) and "env://" in [getattr(each, "value", "") for each in node.comparators]:
            told = values.conditions.flag(last_name(node.left))
            if told is not None and told != "env://":
                return source.where(node)
    if any(isinstance(each, ast.Constant) and each.value in _TOLD_BY_TORCHRUN for each in source.nodes):
        return ""
    # Of several ways to start, the one that its flags lead to.
    starts = [call for call in source.calls if last_name(call.func) in ("spawn", "init_process_group")
              and not _is_alone(call, call.func)]  # fmt: skip
    come_to = [call for call in starts if values.machine.needed(call) == ()]
    own = (
        call
        for call in come_to or starts
        if (last_name(call.func) == "spawn" and call.args)
        or (last_name(call.func) == "init_process_group" and (argument(call, "rank") or argument(call, "world_size")))
    )
    return next((source.where(call) for call in own), "")


def launched(source: Source, flags: Sequence[Flag]) -> str:
    """Where it makes its group with a rank of ``--local_rank``, where nothing reads $LOCAL_RANK."""
    if any(isinstance(each, ast.Constant) and each.value in ("RANK", "LOCAL_RANK") for each in source.nodes):
        return ""
    named = {"--local_rank", "--local-rank"}
    told = [flag for flag in flags if named & {flag.name, *flag.aliases}]
    groups = (source.where(call) for call in source.calls if last_name(call.func) == "init_process_group")
    return next(groups, "") if told else ""
