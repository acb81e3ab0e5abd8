"""Where a script starts its ranks itself, or is told of them by its own flags."""

from __future__ import annotations

import ast
from itertools import islice

from argosy.workflows.script.ranks import TOLD_BY_TORCHRUN, is_alone, waits_for
from argosy.workflows.script.source import Source, argument, last_name, plain
from argosy.workflows.script.values import Values

_STARTERS = ("detectron2.engine.launch",)  # of a library, with the number of GPUs that its flags say


def own_ranks(source: Source, values: Values) -> str:
    """Where the script starts its ranks, or is told of them by its own flags; "" where it reads what torchrun tells."""
    for node in source.nodes:
        if isinstance(node, ast.Compare) and "env://" in [getattr(each, "value", "") for each in node.comparators]:
            told = values.conditions.flag(last_name(node.left))
            if told is not None and told != "env://":
                return source.where(node)
    if (starts_them := _by_variables(source)) is not None:
        return source.where(starts_them)
    if any(isinstance(each, ast.Constant) and each.value in TOLD_BY_TORCHRUN and _is_of_environ(each, source)
           for each in source.nodes):  # fmt: skip
        return ""
    # Of several ways to start, the one that its flags lead to.
    starts = [call for call in source.calls if (last_name(call.func) in ("spawn", "init_process_group")
              and not is_alone(call, call.func)) or source.origin(call.func) in _STARTERS]  # fmt: skip
    come_to = [call for call in starts if values.machine.needed(call) == ()]
    own = (
        call
        for call in come_to or starts
        if (last_name(call.func) in ("spawn", "launch") and call.args)
        or (last_name(call.func) == "init_process_group" and (argument(call, "rank") or argument(call, "world_size"))
            and not _is_launched(call, values) and waits_for(call, values) is None)
    )  # fmt: skip
    return next((source.where(call) for call in own), "")


def _by_variables(source: Source) -> ast.Call | None:
    """What starts programs whose ranks it tells them itself: ``env["RANK"] = "1"``, ``Popen(command, env=env)``."""
    told = {ast.unparse(each.value) for each in source.nodes if isinstance(each, ast.Subscript)
            and isinstance(each.ctx, ast.Store) and plain(each.slice) in TOLD_BY_TORCHRUN}  # fmt: skip
    known = ((call, argument(call, "env")) for call in source.calls if last_name(call.func) in ("Popen", "run"))
    theirs = told - {"os.environ", "environ"}  # what the script itself was told, or tells itself
    return next((call for call, env in known if env is not None and ast.unparse(env) in theirs), None)


def _is_of_environ(node: ast.AST, source: Source) -> bool:
    """And no name of a setting, as of a class that keeps its rank there."""
    near = [each for each in islice(source.above(node), 3) if isinstance(each, ast.expr)]
    return any("env" in ast.unparse(each).lower() for each in near) or not near


def _is_launched(call: ast.Call, values: Values) -> bool:
    """Whether its rank is the ``--local_rank`` that torch.distributed.launch gives."""
    rank = argument(call, "rank")
    flag = values.flag(rank.attr) if isinstance(rank, ast.Attribute) else None
    return flag is not None and bool({"--local_rank", "--local-rank"} & {flag.name, *flag.aliases})
