"""What the ranks of a node wrote since a restore: whether those of two nodes went on from the same step."""

from __future__ import annotations

from argosy.steps.contract.channel import Save
from argosy.steps.launch.units import Contents, is_later, is_numbered
from argosy.steps.launch.whole_files import Signature


class SinceRestore:
    """Of one node and one restart. Units whose names tell no order say nothing, nor do those that were not restored:
    rank 0 alone may save its best model of an earlier step.

    A unit is written again when none of its files is as it was restored, and touched when one is not: a script may
    touch one of them as it resumes, or save it again and leave one as it is.
    """

    def __init__(self, restored: Contents, of_others: Signature) -> None:
        """``of_others``: files that other nodes save, as they were put here."""
        self._numbered = [unit.name for unit in restored.units if is_numbered(unit.name)]
        self._restored = set(restored.files.items())
        own = {unit.name: unit.files.items() - of_others.items() for unit in restored.units}
        self.own = {name: files for name, files in own.items() if files and is_numbered(name)}
        """What its ranks had saved of each restored unit."""
        self.again: set[str] = set()
        """Restored units that its ranks wrote again."""
        self.touched: set[str] = set()
        self._later = ""
        """A unit after the restored ones."""

    @property
    def tells(self) -> bool:
        """Whether anything was restored that later units can be compared with."""
        return bool(self._numbered)

    def is_later(self, unit: str) -> bool:
        """Whether its name tells that it comes after what was restored."""
        return self.tells and all(is_later(unit, each) for each in self._numbered)

    def look(self, found: Contents) -> None:
        """The folder was looked at; called often, as a script may remove its older units."""
        for unit in found.units if self.tells else ():
            if self.is_later(unit.name):
                self._later = unit.name
            elif unit.name in self.own and unit.files.items() - self._restored:
                self.touched.add(unit.name)
                if not unit.files.items() & self.own[unit.name]:
                    self.again.add(unit.name)

    def mixture(self, save: Save, node: str) -> str:
        """Node 0 asks ``node``, which is ours, for a unit: what tells that the ranks of the two resumed at different
        steps; "": nothing.
        """
        # Only where the one side touched none: a look may miss what a script removes at once.
        if self.again and save.touched is False and self.is_later(save.unit):
            return _told(node, min(self.again), "the first node", save.unit)
        return (
            _told("the first node", min(save.again), node, self._later)
            if save.again and not self.touched and self._later
            else ""
        )


def _told(behind: str, again: str, before: str, later: str) -> str:
    return (
        f"after the restore the ranks of {behind} wrote {again} again while those of {before} went on to {later}: they "
        "resumed at different steps, so no checkpoint of both is committed. Each node got back only the files that its "
        'own ranks wrote; if a rank reads what another node writes, set checkpoint.reshard = "all"'
    )
