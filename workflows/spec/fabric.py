"""Which fabric a gang has, what contradicts it, and what is worth knowing of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from argosy.workflows.fabric.catalogue import known_profile, with_included
from argosy.workflows.fabric.contradictions import contradictions
from argosy.workflows.fabric.fabric import Fabric
from argosy.workflows.fabric.filling import fill
from argosy.workflows.fabric.problem import FabricProblem
from argosy.workflows.fabric.profile import Profile
from argosy.workflows.spec.environment import check_environment
from argosy.workflows.spec.pod import Pod
from argosy.workflows.spec.refusal import Refusal, as_input_error
from argosy.workflows.spec.texts import check_literal, quantity

if TYPE_CHECKING:
    from argosy.workflows.spec.run import TrainingRun


def check_parameters(given: Any) -> Any:
    """The parameters as text: in TOML a number may be written as one.

    Raises:
        Refusal: neither text nor a whole number.
    """
    if not isinstance(given, Mapping):
        return given
    for name, value in given.items():
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise Refusal("must be text or a whole number", f'write {name} = "..."', field=str(name), value=value)
    return {name: str(value) for name, value in given.items()}


def filled_fabric(name: str, own: Mapping[str, Any] | None, parameters: Mapping[str, str], run: str) -> Fabric:
    """The fabric of ``[gang]``: a profile of ours by ``name`` or ``own``; without either the empty one.

    Raises:
        Refusal: both are given, one cannot be used, or a parameter is wrong; fields are relative to ``[gang]``.
    """
    if not name and own is None:
        if parameters:
            raise Refusal("has no effect without a fabric", "name a fabric, or remove it", field="fabric_parameters")
        return Fabric()
    if name and own is not None:
        raise Refusal("stands beside fabric_profile", "give one of the two", field="fabric", value=name)
    if name.endswith(".toml"):
        remedy = "load the run with load_run, or hand over fabric_profile"
        raise Refusal("is a file, and only a run that is read from a file finds it", remedy, field="fabric", value=name)
    try:
        profile = known_profile(name) if own is None else with_included(_own(own))
        fabric = fill(profile, parameters, run)
    except FabricProblem as problem:
        raise Refusal(problem.rule, problem.remedy, field=problem.field, value=problem.value) from None
    if own is not None:
        _check_texts(fabric)
    return fabric


def _own(table: Mapping[str, Any]) -> Profile:
    try:
        return Profile.model_validate(dict(table))
    except ValidationError as error:
        text = str(as_input_error(error, Profile))
        rule, _, remedy = text.partition("; ")
        raise Refusal(f"cannot be used: {rule}", remedy, field="fabric_profile") from None


def _check_texts(fabric: Fabric) -> None:
    """What a stranger's profile brings is held to the same rules as what the user writes.

    Raises:
        Refusal: a text that Argo or the kubelet would rewrite, or a variable that is not free.
    """
    try:
        check_environment({setting.name: setting.value for setting in fabric.env})
    except Refusal as refusal:
        raise Refusal(str(refusal), "", field=f"fabric_profile.env.{refusal.field}", value=refusal.value) from None
    for place, text in fabric.texts():
        try:
            check_literal(text)
        except Refusal as refusal:
            raise Refusal(str(refusal), "", field=f"fabric_profile.{place}", value=text) from None
    for name, text in [*fabric.resources.items(), *([("shm", fabric.shm_size)] if fabric.shm_size else [])]:
        try:
            quantity(text)
        except ValueError:
            remedy = 'write for example "1", "5120Mi"'
            raise Refusal(f"is no quantity of {name}", remedy, field="fabric_profile", value=text) from None


def check_volumes(fabric: Fabric, pod: Pod) -> None:
    """Accept what does not take a volume's name or place from the fabric.

    Raises:
        Refusal: it does; the field is relative to ``[gang]``.
    """
    names, paths = ({each[key] for each in fabric.mounts} for key in ("name", "mountPath"))
    names |= {each["name"] for each in fabric.volumes}
    for volume in pod.volumes:
        for field, value, taken in (("name", volume.name, names), ("mount_path", volume.mount_path, paths)):
            if value in taken:
                rule = f"is taken by a volume of fabric {fabric.name}"
                raise Refusal(rule, "choose another", field=f"pod.volumes.{field}", value=value)


def check_contradictions(run: TrainingRun) -> None:
    """Accept what merely differs from the fabric's own values.

    Raises:
        Refusal: a variable that the fabric cannot work with; the field is relative to the run.
    """
    for found in contradictions(run.fabric, run.env, run.gang.pod.host_network):
        raise Refusal(found.rule, found.remedy, field=f"env.{found.name}", value=found.value)


def fabric_warnings(run: TrainingRun) -> list[str]:
    """What is allowed and worth knowing, a sentence each."""
    fabric, gang = run.fabric, run.gang
    if not fabric.name:
        return []
    named = f"gang.fabric = {fabric.name!r}"
    found = [] if fabric.one_node else [f"{named}: {fabric.proven}; the first run's transport verdict is the proof"]
    if fabric.privileges:
        found.append(f"{named}: the namespace must be Pod Security privileged ({', '.join(fabric.privileges)})")
    if fabric.gpus and gang.resources.gpu != fabric.gpus:
        found.append(
            f"{named}: its counts are those of a node with {fabric.gpus} GPUs, and gang.resources.gpu = "
            f"{gang.resources.gpu}: the pod takes every adapter of its node all the same"
        )
    for name, amount in gang.resources.extended.items():
        if fabric.resources.get(name, amount) != amount:
            found.append(f"{named}: gang.resources.extended has {name} = {amount}, not its {fabric.resources[name]}")
    if not fabric.one_node and gang.max_nnodes == 1:
        found.append(f"{named}: gang.nnodes = 1: nothing crosses it, and its transport is not verified")
    return found + [f"{named}: {note}" for note in fabric.notes]
