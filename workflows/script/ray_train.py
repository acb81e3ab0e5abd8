"""How a script of Ray Train saves: below its RunConfig's folder, where Ray finds it again by the run's name."""

from __future__ import annotations

from argosy.workflows.script.source import Source, argument, last_name
from argosy.workflows.script.trainer import RAY_TRAIN, TrainerFacts, certain
from argosy.workflows.script.values import Values

_TRAINERS = ("TorchTrainer", "LightningTrainer", "TransformersTrainer")


def ray_train(source: Source, values: Values) -> TrainerFacts | None:
    """What its calls say; None where it makes no trainer of Ray's, or only a setting that is not known
    tells whether it does."""
    made = next(
        (call for call in source.calls if last_name(call.func) in _TRAINERS and values.conditions.runs(call)), None
    )
    if made is None or "ray" not in source.packages:
        return None
    config = next((call for call in source.calls if last_name(call.func) == "RunConfig"), None)
    place = None if config is None else argument(config, "storage_path")
    named = config is not None and argument(config, "name") is not None
    return TrainerFacts(
        library=RAY_TRAIN,
        where=source.where(made),
        folder=None if place is None else certain(values, place),
        remedy="write RunConfig(name='run', storage_path=os.path.abspath('out')) into it, or argosy.Checkpointer into "
        "the function that the workers run",
        # Not Ray's marker, which is empty.
        include=("*/checkpoint_*/**/*", "*/checkpoint_manager_snapshot.json"),
        resumes="itself" if named else "",
        start="RunConfig(name='run', ...), by which Ray finds it",
    )
