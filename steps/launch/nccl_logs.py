"""Where NCCL's log of this node's ranks goes: to files of ours, unless somebody has chosen something else."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from argosy.steps.nccl.effective import Variable
from argosy.steps.nccl.growing import GrowingFile

SUBSYSTEMS: Final = "INIT,BOOTSTRAP,ENV,NET"
"""What is said when communicators are made; ALL adds lines to every collective and fills disks."""
FILE_BYTES: Final = 16 << 20
"""Of one rank's log on disk; what was read is given back beyond it."""
MOST_FILES: Final = 1024
_CHOICES: Final = ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE")
_TELLING: Final = ("INFO", "TRACE")
_OWN_FILE: Final = "nccl.%h.%p.log"


@dataclass(slots=True)
class NcclLogs:
    """``variables`` are for the ranks; ``pattern`` finds the files; empty: none will tell, as ``why`` says."""

    variables: dict[str, str]
    pattern: str
    why: str
    owned: bool
    """The files are ours to keep small."""
    _files: dict[str, GrowingFile] = field(default_factory=dict)

    def new_lines(self) -> Iterable[list[str]]:
        """What was written since the last call, in portions."""
        for path in sorted(glob.glob(self.pattern))[:MOST_FILES] if self.pattern else ():
            file = self._files.setdefault(path, GrowingFile(Path(path)))
            more = True
            while more:
                lines, more = file.read()
                if lines:
                    yield lines
            if self.owned:
                file.keep_small(FILE_BYTES)


def choose_logs(effective: Sequence[Variable], folder: Path, workdir: Path) -> NcclLogs:
    """NCCL's log below ``folder`` when nobody has set any of its three variables; else where theirs goes.

    ``folder`` has the ranks' own output as well, where NCCL writes when it has no file; ``workdir`` is theirs.
    """
    chosen = {each.name: each.value for each in effective if each.name in _CHOICES and each.value}
    if not chosen:
        file = str(folder).replace("%", "%%") + f"/{_OWN_FILE}"
        variables = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": SUBSYSTEMS, "NCCL_DEBUG_FILE": file}
        return NcclLogs(variables, pattern_of(file), "", owned=True)
    level = chosen.get("NCCL_DEBUG", "").upper()
    if level not in _TELLING:
        said = f"NCCL_DEBUG = {chosen['NCCL_DEBUG']}" if level else f"{', '.join(sorted(chosen))} without NCCL_DEBUG"
        return NcclLogs({}, "", f"{said} is set, so NCCL does not tell its network; INFO does", owned=False)
    if "NCCL_DEBUG_FILE" in chosen:
        return NcclLogs({}, pattern_of(str(workdir / chosen["NCCL_DEBUG_FILE"])), "", owned=False)
    return NcclLogs({}, f"{glob.escape(str(folder))}/rank-*.log", "", owned=False)


def pattern_of(file: str) -> str:
    """A glob for what NCCL makes of ``%h`` and ``%p``."""
    return "".join(
        {"%h": "*", "%p": "*", "%%": "%"}.get(part, glob.escape(part)) for part in re.split(r"(%[hp%])", file)
    )
