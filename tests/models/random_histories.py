"""Random histories of one run, each from its own seed."""

from __future__ import annotations

import random

from argosy.steps.store import ObjectStore
from tests.models.history import Gang, World

KINDS = ("crash-after", "lose-before", "lose-after")


def play(store: ObjectStore, seed: str, acts: int) -> World:
    """One history of about so many acts; Broken when a promise was not kept."""
    chance = random.Random(seed)
    world = World(store)
    world.claim(chance.choice((1, 2)))
    while world.acts < acts:
        one_act(world, chance)
    if not current(world, chance).alive:
        world.claim(1)
    world.prune(world.gangs[-1], 2)
    world.resume()
    return world


def current(world: World, chance: random.Random) -> Gang:
    """Mostly the newest gang, sometimes a zombie; a new one where all are dead."""
    alive = [gang for gang in world.gangs if gang.alive]
    if not alive:
        return world.claim(chance.choice((1, 2, 4)))
    return alive[-1] if chance.random() < 0.8 else chance.choice(alive)


def one_act(world: World, chance: random.Random) -> None:
    gang = current(world, chance)
    fault = chance.random() < 0.25
    strike = (chance.randrange(24), chance.choice(KINDS)) if fault else (-1, "")
    what = chance.choices(ACTS, WEIGHTS)[0]
    live = [entry.digest for entry in world.model.live()]
    whole = [digest for digest in live if digest not in world.model.damaged]
    pinned = sorted(world.model.pinned & set(live))
    if what == "save":
        final, again = chance.random() < 0.1, chance.random() < 0.1
        world.save(gang, final=final, again=again, strike_in=strike[0], kind=strike[1])
    elif what == "begin":
        world.begin(gang, *strike)
    elif what == "prune":
        world.prune(gang, chance.randint(1, 3), *strike)
    elif what == "claim":
        world.claim(chance.choice((1, 2, 4)))
    elif what == "roll back":
        world.roll_back()
    elif what == "resume":
        world.resume()
    elif what == "pin" and whole:
        world.pin(chance.choice(whole))
    elif what == "unpin" and pinned:
        world.unpin(chance.choice(pinned))
    elif what == "corrupt" and whole:
        world.corrupt(chance.choice(whole), chance.randrange(10**6))


ACTS = ("save", "begin", "prune", "claim", "roll back", "resume", "pin", "unpin", "corrupt")
WEIGHTS = (40, 5, 20, 8, 3, 6, 8, 4, 6)
