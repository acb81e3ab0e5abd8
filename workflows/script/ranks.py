"""What a script spreads over ranks with, and who tells it which rank it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from argosy.workflows.script.account import flag_tests
from argosy.workflows.script.flags import Flag
from argosy.workflows.script.settings import Settings
from argosy.workflows.script.source import Source, argument, last_name, plain
from argosy.workflows.script.values import Values

DISTRIBUTED = frozenset(
    {"init_process_group", "deepspeed", "Accelerator", "init_device_mesh", "Fabric", "DDPStrategy", "FSDPStrategy"}
)
_CLASSES = frozenset({"Accelerator", "Fabric", "DDPStrategy", "FSDPStrategy"})
_WRAPPERS = frozenset({"DistributedDataParallel", "DDP", "FullyShardedDataParallel", "FSDP", "fully_shard"})
_PARTED = _WRAPPERS - {"DistributedDataParallel", "DDP"}
_STARTS = re.compile(r"init_?(process|dist)|initialize_|launch|setup_(dist|ddp)|dist_|ddp_|local_rank|LOCAL_RANK")
_OF_RANK = re.compile(r"(\{[^{}]*rank(?!ing)[^{}]*\}[^{}\s]*|\+ [^+]*rank(?!ing)[^+]*\+ '[^'\s]*)\.(pth?|ckpt|bin)'$")
EACH_RANK = "names a file for each rank"
_BY_NUMBER = re.compile(r"(?i)rank[_-]?\*")
_BY_JAX = "jax.distributed.initialize"
_WITHOUT_TORCH = ("jax", "flax", "tensorflow", "xgboost", "lightgbm")
_WITH_TORCH = frozenset(
    {"torch", "lightning", "pytorch_lightning", "transformers", "accelerate", "deepspeed", "fastai", "timm", "ray"}
)
TOLD_BY_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE")


@dataclass(frozen=True)
class Spread:
    """``by``: what a script spreads over ranks with, and where; ``cuda``: where it uses GPUs; ``only``: where
    it would make a group of ranks, and what keeps it from that; ``node``: why it is one node's.
    """

    by: tuple[str, str] | None = None
    cuda: str | None = None
    only: str = ""
    node: str = ""
    alike: bool = False  # each rank has all of the model
    mpi: str = ""  # where MPI tells each rank which it is
    plain: str = ""  # the package that it trains with, if that needs no torch
    told: tuple[int, int] = (0, 0)
    """The nodes, and the ranks on each, that a Fabric takes, and no others; 0: not said."""
    unmet: bool = False  # whether jax.distributed is not told where to meet
    size: int = 0  # the ranks that a group waits for, as a flag says; 0: not said


def spread(source: Source, values: Values) -> Spread:
    """What the names tell that it comes to."""
    names, only = list(_used(source, values)), _kept_from_a_group(source, values)
    names = [each for each in names if not only or each[0] not in ("init_process_group", *_WRAPPERS)]
    # A library's wrapper that nobody makes a group of ranks for is never come to.
    wrappers = _WRAPPERS if any(_STARTS.search(ast.unparse(node.func)) for node in source.calls) else ()
    by = next(((name, where) for name, where in names if name in (*DISTRIBUTED, *wrappers)), None)
    by = next((each for each in names if by is not None and each[0] == "Fabric"), by)  # whose strategies others are
    cuda = next((where for name, where in names if name in ("cuda", "nccl")), None)
    group = any(name == "init_process_group" for name, _ in names)
    shared = (call for call in source.calls if last_name(call.func) == "DistributedSampler")
    own = (call for call in (*_groups(source), *shared) if (rank := argument(call, "rank")) is not None
           and "local_rank" in ast.unparse(rank).lower() and call in values.machine.calls)  # fmt: skip
    plugged = any(last_name(call.func) == "Accelerator" and "plugin" in ast.unparse(call) for call in source.calls)
    parted = any(name in _PARTED for name, _ in names)
    alike = (group and not parted) or (by is not None and by[0] == "Accelerator" and not plugged)
    node = next((f"{source.where(call)} takes the rank on its node for that in the group" for call in own), "")
    taken = (call for call in source.calls for each in _gpus(call)
             if any(map(_is_global, (each, *values.bindings.origins(each)))))  # fmt: skip
    node = node or next((f"{source.where(call)} takes the rank of all nodes for a GPU's number" for call in taken), "")
    mpi = _by_mpi(source, values)
    jax = next((call for call in source.calls if source.origin(call.func) == _BY_JAX), None)
    by = by or (("MPI", mpi) if mpi else None) or (("jax.distributed", source.where(jax)) if jax else None)
    sizes = (size for call in _groups(source) if values.machine.needed(call) == ()
             and (size := waits_for(call, values)) is not None)  # fmt: skip
    unmet = jax is not None and argument(jax, "coordinator_address", 0) is None
    return Spread(by, cuda, only, node or _files_of_ranks(source), alike, mpi,
                  _plain(source, jax is not None), _of_fabric(source, values), unmet, next(sizes, 0))  # fmt: skip


def _of_fabric(source: Source, values: Values) -> tuple[int, int]:
    call = next((each for each in source.calls if last_name(each.func) == "Fabric"), None)
    asked = [None if call is None else argument(call, name) for name in ("num_nodes", "devices")]
    told = [plain(each) or values.conditions.flag(last_name(each)) or "" if each is not None else "" for each in asked]
    nodes, devices = (int(each) if each.isdecimal() else 0 for each in told)
    return nodes, devices


def waits_for(call: ast.Call, values: Values) -> int | None:
    """How many ranks make a group of which the environment tells each its own, and the script how many they are."""
    size, where = argument(call, "world_size"), plain(argument(call, "init_method", 1) or ast.Constant("env://"))
    rank, flag = argument(call, "rank"), values.flag(size.attr) if isinstance(size, ast.Attribute) else None
    other = flag is not None and flag.attribute in values.bindings.attributes  # as what WORLD_SIZE says
    told = rank is None or any(each in ast.unparse(rank) for each in ("'RANK'", "'LOCAL_RANK'"))
    if where != "env://" or other or not told:
        return None
    said = plain(size) or (values.conditions.flag(flag.attribute) if flag is not None else "") or ""
    return int(said) if said.isdecimal() and int(said) > 0 else None


def _plain(source: Source, by_jax: bool) -> str:
    # A tokenizer of transformers needs no torch.
    with_torch = _WITH_TORCH - {"transformers"} if by_jax else _WITH_TORCH
    return "" if source.packages & with_torch else next(filter(source.packages.__contains__, _WITHOUT_TORCH), "")


def _gpus(call: ast.Call) -> list[ast.expr]:
    """The numbers of GPUs that it is given: ``set_device(gpu)``, ``DDP(model, device_ids=[gpu])``."""
    listed = argument(call, "device_ids")
    return call.args[:1] if last_name(call.func) == "set_device" else getattr(listed, "elts", [])


def _is_global(node: ast.expr) -> bool:
    """``dist.get_rank()``, ``int(os.environ["RANK"])``."""
    inside = [each for each in ast.walk(node) if isinstance(each, ast.Call | ast.Constant | ast.BinOp)]
    kinds = {last_name(each.func) if isinstance(each, ast.Call) else getattr(each, "value", "%") for each in inside}
    return bool(kinds & {"get_rank", "RANK"}) and not kinds & {"%", "LOCAL_RANK"}


def rank_files(patterns: Sequence[str]) -> list[str]:
    """Of files in a folder per checkpoint those that may be numbered by rank, by their names: rank{rank}.pt."""
    names = [Path(each).name for each in patterns if "/" in each]
    return [_BY_NUMBER.sub(lambda end: f"{end[0][:-1]}{{rank}}", name) for name in names if _BY_NUMBER.search(name)]


def _files_of_ranks(source: Source) -> str:
    """Where each rank saves a file of its own, as ``f"{name}.{rank}.pth"``: each node's disk holds a part."""
    names = (
        node
        for node in source.nodes
        if isinstance(node, ast.JoinedStr | ast.BinOp) and _OF_RANK.search(ast.unparse(node))
    )
    return next((f"{source.where(node)} {EACH_RANK}, each on its node's disk" for node in names), "")


def _groups(source: Source) -> list[ast.Call]:
    return [call for call in source.calls if last_name(call.func) == "init_process_group"]


def _kept_from_a_group(source: Source, values: Values) -> str:
    """Where all groups are, and a test of flags that keeps the script from them; "" where it may come to one."""
    calls = _groups(source) if values.machine.followed else []
    tests = [next(flag_tests(call, source, values), None) for call in calls]
    come_to = (call in values.machine.calls and values.conditions.runs(call) is not False for call in calls)
    if any(come_to) or None in tests or not calls:
        return ""
    return f"{source.where(calls[0])} makes its group of ranks only if {ast.unparse(tests[0])}"  # type: ignore[arg-type]


def launcher(source: Source, values: Values) -> Flag | None:
    """The flag that says who starts the ranks, as OpenMMLab has it, where ``pytorch`` is torchrun."""
    words = {getattr(each, "value", "") for each in source.nodes if isinstance(each, ast.Constant)}
    return values.flag("launcher") if "pytorch" in words and "launcher" not in values.conditions.given else None


def _used(source: Source, values: Values) -> Iterator[tuple[str, str]]:
    """Names that stand where the script comes to as its flags are."""
    come_to, gone = {call.func for call in source.calls}, {None, *map(source.function_of, values.machine.calls)}
    left = {node.func for node in source.nodes if isinstance(node, ast.Call)} - come_to
    for node in (each for each in source.nodes if each not in left):
        name = last_name(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        call = next(source.above(node), None)
        if name in _CLASSES and not (isinstance(call, ast.Call) and call.func is node):
            continue  # an annotation
        missed = call not in values.machine.calls if name in _CLASSES else source.function_of(node) not in gone
        if name in (*_WRAPPERS, *_CLASSES) and values.machine.followed and source.file(node) and missed:
            continue  # a function beside it that nobody calls
        compared = any(isinstance(each, ast.Compare) for each in islice(source.above(node), 2))
        if (
            name in (*DISTRIBUTED, *_WRAPPERS, "cuda", "nccl")
            and not compared
            and not is_alone(call, node)
            and values.conditions.runs(node) is not False
        ):
            yield name, source.where(node)


def is_alone(call: ast.AST | None, function: ast.AST) -> bool:
    """Whether a group of one is made, where nobody has made another: ``init_process_group(world_size=1, rank=0)``."""
    if not isinstance(call, ast.Call) or call.func is not function:
        return False
    fabric = last_name(call.func) == "Fabric" and plain(argument(call, "num_nodes")) in (None, "1")
    return plain(argument(call, "world_size")) == "1" or (fabric and plain(argument(call, "devices")) == "1")


def _by_mpi(source: Source, values: Values) -> str:
    """Where MPI tells each rank which it is: what it says is written where torchrun's words stand, and read nowhere, or
    Horovod asks.
    """
    words = [each for each in source.nodes if isinstance(each, ast.Constant) and each.value in TOLD_BY_TORCHRUN]
    owners = [next(source.above(each)) for each in words]
    gone = {None, *map(source.function_of, values.machine.calls)}
    if "mpi4py" in source.packages and all(isinstance(getattr(each, "ctx", None), ast.Store) for each in owners):
        tells = [each for each in owners if source.function_of(each) in gone or not values.machine.followed]
    else:
        tells = []
    tells += [call for call in source.calls if values.machine.comes_to(call)
              and re.fullmatch(r"horovod\.[\w.]*init", source.origin(call.func))]  # fmt: skip
    return next(map(source.where, tells), "")


def launched(source: Source, values: Values, flags: Sequence[Flag], settings: Settings) -> tuple[str, Flag] | None:
    """Where it makes its group, and the ``--local_rank`` that tells it its GPU, where $LOCAL_RANK does not."""
    told = [flag for flag in flags if {"--local_rank", "--local-rank"} & {flag.name, *flag.aliases}]
    told += [Flag(f"{key}=", True, None, False, "", key) for key in settings.values if key == "local_rank"]
    flag, read = next(iter(told), None), [node.attr for node in source.nodes if isinstance(node, ast.Attribute)]
    groups = [source.where(call) for call in _groups(source)]
    if flag is None or not groups or flag.attribute not in read:
        return None
    asked = any(getattr(each, "value", "") == "LOCAL_RANK" for each in source.nodes if isinstance(each, ast.Constant))
    return (groups[0], flag) if not asked or _sets_its_device(flag.attribute, source, values) else None


def _sets_its_device(name: str, source: Source, values: Values) -> bool:
    """Whether ``set_device(args.local_rank)`` is given what the command line says, wherever $LOCAL_RANK is read."""
    for call in (each for each in source.calls if last_name(each.func) == "set_device" and each.args):
        asked = call.args[0]
        owner = ast.unparse(asked.value) if isinstance(asked, ast.Attribute) and asked.attr == name else ""
        known = [value for given, value in values.bindings.attributes.get(name, []) if given == owner]
        if owner and not any("LOCAL_RANK" in ast.unparse(each) for each in known):
            return True
    return False
