"""A profile in words, with the reason and the source of each fact."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Final

from argosy.workflows.fabric.catalogue import known_profile, profile_names
from argosy.workflows.fabric.profile import SECTIONS, Fact, Parameter, Profile

_HEADS: Final = {
    "env": "environment of the ranks",
    "refused": "what [env] must not set",
    "resources": "resources of each pod, requested and limited",
    "labels": "labels of each pod",
    "annotations": "annotations of each pod",
    "volumes": "volumes",
    "sidecars": "containers beside the ranks",
    "pod": "fields of the pod",
    "security": "rights beyond Pod Security restricted",
    "shm": "/dev/shm, unless gang.shm_size is given",
    "expect": "what the ranks must talk over",
    "notes": "what is left to you",
}
_WIDTH: Final = 112


def profile_list() -> str:
    """A line for each profile."""
    width = max(map(len, profile_names()))
    lines = [f"  {name:<{width}}  {known_profile(name).about}" for name in profile_names()]
    return "\n".join(["profiles (all of one: argosy explain-config fabric.NAME):", *lines])


def profile_text(profile: Profile) -> str:
    """All of a profile; ``profile`` is one with what it includes."""
    lines = [f"fabric.{profile.name}: {profile.about}", f"  proven: {profile.proven}"]
    if profile.parameters:
        lines.append("  gang.fabric_parameters:")
        lines += [line for each in profile.parameters for line in _parameter(profile, each)]
    for section in SECTIONS:
        facts: tuple[Fact, ...] = getattr(profile, section)
        if facts:
            lines.append(f"  {_HEADS[section]}:")
            lines += [line for fact in facts for line in _fact(profile, fact)]
    return "\n".join(lines)


def _parameter(profile: Profile, parameter: Parameter) -> Iterator[str]:
    state = "required" if parameter.required else f'default "{parameter.default}"'
    yield f"    {parameter.name} ({state}{_condition(parameter)}): {parameter.about}"
    for choice, carried in parameter.choices.items():
        if carried:
            text = ", ".join(f"{key} {value}" for key, value in carried.items())
            yield from textwrap.wrap(f"{choice}: {text}", _WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 8)
    yield from _reason(profile, parameter)


def _fact(profile: Profile, fact: Fact) -> Iterator[str]:
    yield f"    {_head(fact.model_dump())}{_condition(fact)}"
    yield from _reason(profile, fact)


def _head(fact: dict[str, Any]) -> str:
    if "text" in fact:
        return str(fact["text"])
    if "values" in fact:
        return f"{fact['name']}{' = ' + ' or '.join(fact['values']) if fact['values'] else ', whatever its value'}"
    value = next((fact[key] for key in ("value", "volume", "container") if key in fact), "")
    named = f"{fact['name']} = " if "name" in fact else ""
    must = {"equal": " (no other)", "contain": " (or a list that holds it)"}.get(fact.get("must", ""), "")
    seen = f" at {fact['mount']['mountPath']}" if fact.get("mount") else ""
    text = " ".join(value.split()) if isinstance(value, str) else str(value)
    return f"{named}{text or 'none'}{must}{seen}"


def _condition(fact: Fact) -> str:
    words = (f"{name} = {' or '.join(value or 'unset' for value in values)}" for name, values in fact.when.items())
    text = " and ".join(words).replace("= *", "is given").replace("= unset", "is not given")
    return f"  [if {text}]" if text else ""


def _reason(profile: Profile, fact: Fact) -> Iterator[str]:
    source = profile.sources.get(fact.source)
    if fact.why:
        yield from textwrap.wrap(fact.why, _WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    if source is not None:
        yield f"      {source.url} (read {source.date})"
