"""What a command line holds besides the training: variables, folders, installs, transfers, branches."""

from __future__ import annotations

import posixpath
import re
from typing import Final

from argosy.steps.contract.placeholders import as_it_is
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.imports.launchers import Option
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.shell import Assignment, Command
from argosy.workflows.manifests.word import FILL_IN, Values, Word, fill, join

STAGED: Final = "argosy stages data before the GPUs wait: write [dataset] uri"
TRANSFERS: Final = (
    *("aws", "s3cmd", "s5cmd", "gsutil", "gcloud", "rclone", "azcopy", "rsync", "curl", "wget", "mc"),
    *("huggingface-cli", "hf", "git", "scp", "sky", "ossutil", "obsutil"),
)  # fmt: skip
_INSTALLS: Final = ("pip", "pip3", "apt-get", "apt", "conda", "mamba", "uv", "poetry", "yum", "dnf", "apk")
_HARMLESS: Final = (
    *("set", "echo", "printf", "true", ":", "ulimit", "date", "env", "printenv", "hostname", "nvidia-smi", "ls", "pwd"),
    *("whoami", "id", "df", "free", "lscpu", "lspci", "ibstat", "ibv_devinfo", "fi_info", "ip", "ifconfig", "nproc"),
    *("wait", "which", "uname", "cat", "tee", "trap", "exit", "sleep", "shopt", "umask", "nslookup", "ping", "getent"),
    *("dig", "until", "test", "service"),
)  # fmt: skip
_WRAPPERS: Final = {
    "conda": "the image's own python must be this environment",
    "mamba": "the image's own python must be this environment",
    "micromamba": "the image's own python must be this environment",
    "poetry": "the image's own python must be this environment",
    "uv": "the image's own python must be this environment",
    "pipenv": "the image's own python must be this environment",
    "hatch": "the image's own python must be this environment",
    "pdm": "the image's own python must be this environment",
    "timeout": "write deadlines.run_seconds",
}


class Surroundings:
    """Where the reading of a container's commands stands.

    Attributes:
        values: what variables hold now.
        exported: those that programs see: the value and the word that sets it.
        folder: the last ``cd``, with its word.
    """

    def __init__(self, draft: Draft, account: Account, values: Values, name: str) -> None:
        """``name`` of the object, by which its controller calls the pods."""
        self._pods = re.compile(
            rf"(?<![\w.-]){re.escape(name or chr(0))}-(master|chief|worker|launcher)-\d+(?![\w-])", re.I
        )
        self.draft = draft
        self.account = account
        self.values = values
        self.exported: dict[str, tuple[str | None, Word]] = {}
        self._own: dict[str, tuple[str | None, Word]] = {}
        self.folder: str | None = None
        self.folder_word: Word | None = None

    def pod(self, text: str) -> str:
        """The first of the object's own pods that a text names; no gang has one of that name."""
        found = self._pods.search(text)
        return found[0] if found else ""

    def value(self, assignment: Assignment) -> str | None:
        """What is assigned; None when it is not known here."""
        found = fill(assignment.value, self.values)
        return None if found.missing else " ".join(found.words)

    def command(self, command: Command, *, after: bool) -> None:
        """A command that does not train."""
        if not command.words:
            self._assignments(command)
            return
        program, words = self._program(command)
        if program == "cd" and len(words) > 1 and not after and not command.inside:
            self._cd(command, words[1])
        elif program in ("export", "declare", "typeset", "readonly", "local"):
            for name in words[1:]:
                if name in self._own:
                    self.exported[name] = self._own[name]
            self.account.changed(command.whole, "what it exports is in [env], as far as it has a value here")
        elif command.inside == "read":
            self.account.changed(command.whole, "the script is among the files: its commands are taken one by one")
        else:
            self._other(program, words, command)

    def _program(self, command: Command) -> tuple[str, list[str]]:
        words = [" ".join(fill(word, self.values).words) for word in command.words]
        if words and re.fullmatch(r"\[.*\]", words[0], re.DOTALL):
            return "test", words
        return posixpath.basename(words[0].split(" ")[0]) if words else "", words

    def _other(self, program: str, words: list[str], command: Command) -> None:
        account, whole = self.account, command.whole
        if program in _INSTALLS or (program.startswith("python") and words[1:3] == ["-m", "pip"]):
            account.by_hand(whole, "build it into the image: every start would pay for it")
        elif program in TRANSFERS:
            account.by_hand(whole, STAGED)
        elif program in ("source", ".", "eval"):
            account.by_hand(whole, "what it sets is not known here: write it into [env], or into the image")
        elif program in _HARMLESS and not (command.redirected and ">" in command.redirected.replace(">&", "")):
            account.changed(whole, "left out: it does nothing for the training")
        elif program in ("sshd", "ssh-keygen", "mpirun", "ray"):
            account.changed(whole, "torchrun starts the ranks, without ssh, MPI or Ray")
        elif program in _HARMLESS:
            account.lost(whole, f"it writes a file ({command.redirected}): put that in the image")
        else:
            account.lost(whole, "a run starts one script: do this in it, or in the image")

    def _cd(self, command: Command, folder: str) -> None:
        base = self.folder or self.draft.get("working_dir", "")
        path = posixpath.normpath(posixpath.join(base, folder))
        if path.startswith("/"):
            self.folder, self.folder_word = path, command.whole
            self.account.changed(command.whole, "the run's working_dir", "working_dir")
        else:
            self.account.by_hand(command.whole, "write it into working_dir: it is relative to the image's WORKDIR")

    # ---- variables

    def _assignments(self, command: Command) -> None:
        for each in command.assignments:
            value = self.value(each)
            if command.inside and each.exported:
                self.account.by_hand(each.value, f"it stands in {command.inside}: write it into [env] if it holds")
                self.values.known.setdefault(each.name, None)
                continue
            self._own[each.name] = value, each.value
            if each.exported or each.name in self.values.known:
                self.exported[each.name] = value, each.value
            else:
                self.account.changed(each.value, "a variable of the shell: written where it is used")
            self.values.known[each.name] = value

    def before(self, words: list[Word], assignments: dict[str, tuple[str | None, Word]]) -> None:
        """Wrappers of the training: ``env X=1``, ``exec``, ``conda run -n name``."""
        program = ""
        for word in words:
            text = word.source
            name, given, _ = text.partition("=")
            if given and re.fullmatch(r"[A-Za-z_]\w*", name):
                found = fill(word, self.values)
                value = None if found.missing else " ".join(found.words).partition("=")[2]
                assignments[name] = value, word
                continue
            program = posixpath.basename(text) if not text.startswith("-") and not program else program
            why = _WRAPPERS.get(program)
            if why is not None:
                self.account.by_hand(word, why)
            elif word.part or program != "":
                self.account.changed(word, "argosy's launch starts torchrun, with signals passed on")

    def assign(self, option: Option, assignments: dict[str, tuple[str | None, Word]]) -> None:
        """``mpirun -x NAME=value``; ``-x NAME`` passes on what the launcher's pod has, to ranks in other pods."""
        *marks, last = join(option.words)
        for word in marks:
            self.account.changed(word, "set for every rank")
        name, given, _ = (option.words[1].source if len(option.words) > 1 else "").partition("=")
        if len(option.words) < 3 and not given:
            if name in self.values.known:
                assignments[name] = self.values.known[name], last
            else:
                self.account.changed(last, f"nothing in the files sets {name}: every rank has its image's")
            return
        found = fill(option.words[-1], self.values)
        text = None if found.missing else " ".join(found.words)
        if text is not None and given:
            text = text.partition("=")[2]
        assignments[name] = text, last

    # ---- where the training stands

    def branch(self, command: Command) -> None:
        """What is around the training."""
        if command.inside in ("", "read", "the background"):
            pass
        else:
            why = f"the training stands in {command.inside}: argosy starts it on every node, always"
            self.account.advise(command.node, why, "script")
        if command.redirected and command.part:
            words = join([Word((), command.node, command.redirected)])
            for word in words:
                self.account.changed(word, "every rank's output is kept: argosy logs")


def take_image_arguments(container: Container, draft: Draft, account: Account) -> None:
    """Without a command the arguments are for what the image starts, which is the script that the caller names."""
    for node in container.node["args"]:
        draft.append("args", FILL_IN if "$(" in node.text else as_it_is(node.text), node)
        account.kept(node, "args")
        if "$(" in node.text:
            account.by_hand(node, f"$(X) is the kubelet's: write the value in place of {FILL_IN}", "args")
