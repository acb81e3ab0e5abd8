"""From a profile and its parameters to what is rendered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from argosy.steps.contract.transport import ExpectedTransport
from argosy.workflows.fabric.fabric import Fabric
from argosy.workflows.fabric.problem import FabricProblem
from argosy.workflows.fabric.profile import Fact, Parameter, Profile, Setting

_PLACEHOLDER: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_NAME: Final = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "word": (r"[A-Za-z0-9][A-Za-z0-9._-]*", "a word of letters, digits, '.', '_' and '-'"),
    "count": (r"[1-9][0-9]{0,3}", "a whole number from 1"),
    "name": (_NAME, "the name of an object in Kubernetes"),
    "resource": (rf"{_NAME}/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", "a resource's name, domain/name"),
    "image": (r"[A-Za-z0-9][A-Za-z0-9_.\-/:]*(@sha256:[0-9a-f]{64})?", "an image, registry/name:tag"),
    "adapters": (r"\^?=?[A-Za-z0-9][A-Za-z0-9_:.,-]*", "a list of adapters, =mlx5_0,mlx5_3"),
}
"""Kind of a parameter -> its pattern, and in words."""
_LONGEST: Final = 253
F = TypeVar("F", bound=Fact)


def fill(profile: Profile, given: Mapping[str, str], run: str) -> Fabric:
    """The fabric of a gang. ``given`` are the user's parameters, ``run`` the run's name (placeholder ``{run}``).

    Raises:
        FabricProblem: a parameter is missing, unknown, without effect, or not one of its choices.
    """
    known = {**_values(profile, given), "run": run}
    chosen = _Chosen(known)
    sections: dict[str, Any] = {
        "env": tuple({each.name: each for each in chosen.settings(profile.env)}.values()),
        "refused": tuple(chosen.of(profile.refused)),
        "resources": chosen.pairs(profile.resources),
        "labels": chosen.pairs(profile.labels),
        "annotations": chosen.pairs(profile.annotations),
    }
    folders = list(chosen.of(profile.volumes))
    rights = list(chosen.of(profile.security))
    return Fabric(
        name=profile.name,
        **sections,
        volumes=tuple({"name": each.name, **chosen.text(each.volume)} for each in folders),
        mounts=tuple({"name": each.name, **chosen.text(each.mount)} for each in folders if each.mount),
        sidecars=tuple(
            _container(each.name, chosen.text(each.container), each.once) for each in chosen.of(profile.sidecars)
        ),
        pod={each.name: chosen.text(each.value) for each in chosen.of(profile.pod)},
        capabilities=tuple(each.value for each in rights if each.name == "capability"),
        root=any(each.name == "root" for each in rights),
        privileged=any(each.name == "privileged" for each in rights),
        shm_size=next((chosen.text(each.value) for each in chosen.of(profile.shm)), ""),
        gpus=_gpus(chosen.text(profile.gpus)),
        one_node=profile.one_node,
        expect=_expected(profile, chosen),
        sources=profile.sources,
        notes=tuple(each.text for each in chosen.of(profile.notes)),
        proven=profile.proven,
    )


class _Chosen:
    """The facts that hold with these parameters, with their texts filled in."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known

    def of(self, facts: Iterable[F]) -> list[F]:
        return [fact for fact in facts if holds(fact, self._known)]

    def settings(self, facts: Iterable[Setting]) -> list[Setting]:
        held = [fact for fact in self.of(facts) if not self._misses(fact.value)]
        return [fact.model_copy(update={"value": self.text(fact.value)}) for fact in held]

    def pairs(self, facts: Iterable[Any]) -> dict[str, str]:
        held = [fact for fact in self.of(facts) if not self._misses(fact.name + fact.value)]
        return {self.text(fact.name): self.text(fact.value) for fact in held}

    def text(self, value: Any) -> Any:
        if isinstance(value, str):
            return _PLACEHOLDER.sub(self._value, value)
        if isinstance(value, dict):
            return {key: self.text(item) for key, item in value.items()}
        return [self.text(item) for item in value] if isinstance(value, list) else value

    def _misses(self, text: str) -> bool:
        return any(self._known.get(name) == "" for name in _PLACEHOLDER.findall(text))

    def _value(self, found: re.Match[str]) -> str:
        if found[1] not in self._known:
            remedy = f"describe it in parameters; known are {', '.join(sorted(self._known))}"
            raise FabricProblem("names no parameter", remedy, field="fabric_profile", value=found[0])
        return self._known[found[1]]


def holds(fact: Fact, known: Mapping[str, str]) -> bool:
    """Whether the parameters are those under which the fact holds."""
    return all(
        known.get(name, "") in values or ("*" in values and known.get(name, "") != "")
        for name, values in fact.when.items()
    )


def _values(profile: Profile, given: Mapping[str, str]) -> dict[str, str]:
    """Parameter or what a choice carries -> value; parameters that do not apply are empty."""
    names = [each.name for each in profile.parameters]
    for name in given:
        if name not in names:
            near = get_close_matches(name, names, n=1, cutoff=0.6)
            there = f"the parameters are {', '.join(names)}" if names else "it has none"
            remedy = f"did you mean {near[0]!r}?" if near else there
            raise _problem(name, given[name], f"fabric {profile.name} has no such parameter", remedy)
    known = {each.name: given.get(each.name, each.default) for each in profile.parameters}
    for parameter in profile.parameters:
        _check(parameter, known, given)
        carried = {key: "" for choice in parameter.choices.values() for key in choice}
        known |= carried | parameter.choices.get(known[parameter.name], {})
    return known


def _check(parameter: Parameter, known: dict[str, str], given: Mapping[str, str]) -> None:
    name, value = parameter.name, known[parameter.name]
    if not holds(parameter, known):
        if name in given:
            condition = " and ".join(f"{key} = {' or '.join(values)}" for key, values in parameter.when.items())
            raise _problem(name, value, f"has an effect with {condition} only", "remove it")
        known[name] = ""
    elif value == "" and parameter.required:
        raise _problem(name, value, "is required", f"write {_example(parameter)} ({parameter.about})")
    elif value and parameter.choices and value not in parameter.choices:
        raise _problem(name, value, "is none of its choices", f"write one of {', '.join(parameter.choices)}")
    elif value and not (len(value) <= _LONGEST and re.fullmatch(_KINDS[parameter.kind][0], value, re.A)):
        raise _problem(name, value, f"must be {_KINDS[parameter.kind][1]}", f"it is: {parameter.about}")


def _example(parameter: Parameter) -> str:
    return f'{parameter.name} = "{next(iter(parameter.choices))}"' if parameter.choices else f'{parameter.name} = "..."'


def _problem(name: str, value: str, rule: str, remedy: str) -> FabricProblem:
    return FabricProblem(rule, remedy, field=f"fabric_parameters.{name}", value=value)


def _container(name: str, container: dict[str, Any], once: bool) -> dict[str, Any]:
    # restartPolicy Always makes an init container a sidecar: it ends with the ranks, so that the pod can end.
    # https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/
    return {"name": name, **container, **({} if once else {"restartPolicy": "Always"})}


def _gpus(text: str) -> int:
    if not re.fullmatch(r"[0-9]{0,4}", text, re.A):
        raise FabricProblem("is no number", "write a whole number", field="fabric_profile.gpus", value=text)
    return int(text or 0)


def _expected(profile: Profile, chosen: _Chosen) -> ExpectedTransport | None:
    stated = {each.name: chosen.text(each.value) for each in chosen.of(profile.expect)}
    if not stated:
        return None
    try:
        return ExpectedTransport(
            network=str(stated.get("network", "")),
            gdr=stated.get("gdr", False) is True,
            nics=int(stated.get("nics") or 0),
            nic_gbps=int(stated.get("nic_gbps") or 0),
            nvls=stated.get("nvls", False) is True,
            busbw_floor_gbs=float(stated.get("busbw_floor_gbs") or 0.0),
            profile=profile.name,
        )
    except ValueError:
        raise FabricProblem("is no number", "write a number", field="fabric_profile.expect", value=stated) from None
