"""The profiles that argosy knows, and how one includes another."""

from __future__ import annotations

import functools
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from argosy.workflows.fabric.problem import FabricProblem
from argosy.workflows.fabric.profile import SECTIONS, Profile

_HERE: Final = Path(__file__).resolve().parent
_PROFILES: Final = _HERE / "profiles"
_PARTS: Final = _HERE / "parts"


@functools.cache
def profile_names() -> tuple[str, ...]:
    """The profiles, by name."""
    return tuple(sorted(path.stem for path in _PROFILES.glob("*.toml")))


@functools.cache
def known_profile(name: str) -> Profile:
    """A profile of ours with all that it includes.

    Raises:
        FabricProblem: there is none of that name.
    """
    if name not in profile_names():
        near = get_close_matches(name, profile_names(), n=1, cutoff=0.6)
        remedy = f"did you mean {near[0]!r}?" if near else f"the profiles are {', '.join(profile_names())}"
        raise FabricProblem("there is no such profile", remedy, field="fabric", value=name)
    return with_included(_read(_PROFILES / f"{name}.toml"))


def with_included(profile: Profile) -> Profile:
    """The profile with the facts of what it includes before its own.

    Raises:
        FabricProblem: it includes what does not exist, or itself, or a fact names an unknown source.
    """
    included = [_named(name, profile.name) for name in profile.includes]
    members = [*included, profile]
    joined = {name: tuple(fact for each in members for fact in getattr(each, name)) for name in SECTIONS}
    # A parameter that the profile describes anew replaces the included one.
    parameters = {each.name: each for member in members for each in member.parameters}
    sources = {key: source for member in members for key, source in member.sources.items()}
    whole = profile.model_copy(
        update={
            **joined,
            "parameters": tuple(parameters.values()),
            "sources": sources,
            "includes": (),
            "gpus": profile.gpus or next((each.gpus for each in included if each.gpus), ""),
            "one_node": any(each.one_node for each in members),
        }
    )
    for fact in whole.facts():
        if fact.source and fact.source not in sources:
            remedy = f"describe it in [sources]; known are {', '.join(sources) or 'none'}"
            raise FabricProblem("is no source", remedy, field="fabric_profile", value=fact.source)
    return whole


def _named(name: str, by: str) -> Profile:
    parts = sorted(path.stem for path in _PARTS.glob("*.toml"))
    if name in parts:
        return with_included(_read(_PARTS / f"{name}.toml"))
    if name == by or name not in profile_names():
        known = ", ".join([*profile_names(), *parts])
        raise FabricProblem("cannot be included", f"there are {known}", field="fabric_profile.includes", value=name)
    return known_profile(name)


def _read(path: Path) -> Profile:
    return Profile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
