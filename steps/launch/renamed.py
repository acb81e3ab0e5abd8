"""A checkpoint folder that the script renames when it is done: ``run_tmp`` becomes ``run_done``."""

from __future__ import annotations

import os
import sys
from pathlib import Path


class Renamed:
    """Holds on to the folder, so that it is found under another name."""

    def __init__(self, folder: Path, *, own: bool) -> None:
        """``own``: it lies in the pod's own copy of the code; on a volume it stays where the script put it."""
        self._folder, self._own = folder, own
        self._held = -1

    def look(self) -> None:
        """Call often: the script may make the folder late, and make it anew."""
        try:
            found = os.stat(self._folder)
            if self._held >= 0 and os.path.samestat(found, os.fstat(self._held)):
                return
            held = os.open(self._folder, os.O_PATH | os.O_DIRECTORY)
        except OSError:
            return
        if self._held >= 0:
            os.close(self._held)
        self._held = held

    def put_back(self) -> None:
        """After the ranks ended: the run's result is looked for, and restored, under the name it had."""
        if not self._own or self._held < 0 or os.path.lexists(self._folder) or os.fstat(self._held).st_nlink == 0:
            return
        now = os.readlink(f"/proc/self/fd/{self._held}")
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            os.rename(now, self._folder)
        except OSError as error:
            print(f"argosy: the script renamed {self._folder} to {now}, and it stays there: {error}", file=sys.stderr)
            return
        print(f"argosy: the script renamed its checkpoint folder to {now}: put back as {self._folder}", flush=True)
