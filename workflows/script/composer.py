"""How a script of MosaicML's Composer saves: into its Trainer's save_folder, where a link names the newest."""

from __future__ import annotations

import ast
import re

from argosy.workflows.script.source import Source, argument, last_name, plain
from argosy.workflows.script.trainer import TrainerFacts, certain
from argosy.workflows.script.values import Values

_FILES = "ep{epoch}-ba{batch}-rank{rank}.pt"
_FINDS = re.compile(r"glob\(|listdir\(")


def composer(source: Source, values: Values) -> TrainerFacts | None:
    """What its calls say. Its own autoresume follows the link, and links are not kept."""
    made = next((call for call in source.calls if source.origin(call.func).startswith("composer.")
                 and last_name(call.func) == "Trainer"), None)  # fmt: skip
    if made is None:
        return None
    place, load = argument(made, "save_folder"), argument(made, "load_path")
    folder = None if place is None else certain(values, place)
    folder = None if folder and "{" in folder else folder  # {run_name} is Composer's to fill in
    glob = re.sub(r"\{[^{}]*\}", "*", plain(argument(made, "save_filename")) or _FILES)
    kept = [ast.unparse(word) for word in made.keywords if word.arg not in ("load_path", "autoresume")]
    found = f"load_path=max(glob.glob({f'{folder}/{glob}'!r}), key=os.path.getmtime, default=None)"
    known = [] if load is None else [load, *values.bindings.origins(load)]
    names = (name for each in known for name in ast.walk(each) if isinstance(name, ast.Name))
    shown = [ast.unparse(each) for each in (*known, *(one for name in names for one in values.bindings.bound(name)))]
    link = "" if argument(made, "autoresume") is None else ", and no autoresume: it follows a link, which is not kept"
    return TrainerFacts(
        library="composer",
        where=source.where(made),
        folder=folder,
        lacks="saves nothing" if place is None else "saves where only a run could tell",
        remedy="write save_folder='out' into its Trainer, and call argosy init again",
        include=(glob,),
        unit=(glob,),
        resume_flags=(f"--{load.attr}",) if isinstance(load, ast.Attribute) else (),
        resumes="itself" if any(map(_FINDS.search, shown)) else "variable" if {*shown} - {"None"} else "",
        start=f"{ast.unparse(made.func)}({', '.join([*kept, found])}) in {source.where(made)}, with glob and os{link}",
    )
