"""Entry point: the verbs, and what an error looks like."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from errno import EACCES, EDQUOT, ENAMETOOLONG, ENOSPC
from importlib import import_module
from typing import Any

import click

from argosy.steps.cluster.api import NO_NAMESPACE, NOT_ALLOWED, UNHOOKED, ApiError, ApiSilent
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.workflows.cli.standard_streams import NobodyReads, discard, prepare

VERBS: dict[str, tuple[str, str]] = {
    "init": ("argosy.workflows.cli.init", "Write run.toml for your own training script."),
    "lint": ("argosy.workflows.cli.lint.verb", "Find what is wrong in training manifests, without a cluster."),
    "import": ("argosy.workflows.cli.importing", "Turn a PyTorchJob, MPIJob, Job, … into a run.toml."),
    "compile": ("argosy.workflows.cli.compile", "Turn a run.toml into Argo Workflows YAML."),
    "run": ("argosy.workflows.cli.run", "Run a run.toml or a workflow on this machine."),
    "replay": ("argosy.workflows.cli.replaying", "Let the failures of a run happen again, on this machine."),
    "chaos": ("argosy.workflows.cli.chaos.verb", "Break a training on purpose, and say what it lost."),
    "bench-comm": ("argosy.workflows.cli.bench_comm", "Measure what the ranks of a gang get from each other."),
    "watch": ("argosy.workflows.cli.watch.verb", "Start a run whenever new data are there, once."),
    "events": ("argosy.workflows.cli.events", "Say what new data started, or did not, and why."),
    "install": ("argosy.workflows.cli.install", "Render or apply what a namespace needs once."),
    "doctor": ("argosy.workflows.cli.doctor", "Say what a cluster lacks for a run, and what mends it."),
    "submit": ("argosy.workflows.cli.submit", "Submit a run.toml or a workflow to a cluster and follow it."),
    "supervise": ("argosy.workflows.cli.supervise", "Run a JobSet or Job of your own until it has finished."),
    "stage": ("argosy.workflows.cli.stage.verb", "Fetch a dataset into a folder, verified and resumable."),
    "ls": ("argosy.workflows.cli.ls", "List the runs of this machine, a store or a namespace."),
    "status": ("argosy.workflows.cli.status", "Say where a run stands."),
    "top": ("argosy.workflows.cli.top", "Show the runs as a live table."),
    "logs": ("argosy.workflows.cli.logs", "Print what the pods and ranks of a run wrote."),
    "explain": ("argosy.workflows.cli.explain", "Tell what happened to a run, why, and what to do."),
    "diagnose": ("argosy.workflows.cli.diagnose", "Name what ended a training, from anybody's logs."),
    "report": ("argosy.workflows.cli.report", "Write the HTML report of a run."),
    "open": ("argosy.workflows.cli.open", "Write the report and show it in a browser."),
    "stop": ("argosy.workflows.cli.stop", "Stop a run; started again it goes on."),
    "rm": ("argosy.workflows.cli.rm", "Remove what an ended run left."),
    "checkpoint": (
        "argosy.workflows.cli.checkpoint.verbs",
        "List, fetch, verify, pin, prune the checkpoints of a run.",
    ),
    "explain-resume": ("argosy.workflows.cli.explain_resume", "Explain which checkpoint a resume takes."),
    "explain-config": ("argosy.workflows.cli.explain_config", "Explain a field of run.toml: unit, default, rule."),
}
"""Verb -> (module with a click command named ``command``, its one line of help): help imports no verb."""

INTERRUPTED = 130
_FREE_SOME = "free some and run the same again, it goes on where it stopped"


class LazyGroup(click.Group):
    """Knows its verbs by name and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of use."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Import the verb's module; an unknown verb is a usage error that names the nearest."""
        if cmd_name not in VERBS:
            near = get_close_matches(cmd_name, VERBS, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else f"the verbs are {', '.join(VERBS)}"
            ctx.fail(f"no verb {cmd_name!r}; {remedy}")
        found: click.Command = import_module(VERBS[cmd_name][0]).command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of verbs, from the names alone."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    click.echo(f"argosy {version('argosy')}")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Start with: argosy init train.py, then argosy run run.toml. Every verb has --help with an example.\n\n"
    'Completion: eval "$(_ARGOSY_COMPLETE=bash_source argosy)" in ~/.bashrc; zsh_source '
    "(after compinit), fish_source elsewhere.",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Print the version."
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Multi-node training on Argo Workflows that finishes.

    One description of a run compiles to plain Argo YAML; the same bytes run on a cluster and on this machine.

    Exit codes: 0 done, 1 the run failed, 2 wrong input, 3 trained but refused by the gate; interrupted: 129 by a
    terminal that went away, 130 by Ctrl-C, 143 by SIGTERM.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit with its code; never shows a traceback."""
    if sys.getfilesystemencoding() != "utf-8":
        # Names of files are UTF-8 everywhere in a run, and Python takes its own for good when it starts.
        os.execve(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]], {**os.environ, "PYTHONUTF8": "1"})
    words = sys.argv[1:] if argv is None else argv
    prepare(next(iter(words), ""))
    sys.exit(invoke(argv))


def invoke(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        outcome: Any = cli.main(argv, prog_name="argosy", standalone_mode=False)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else 0
    except InputError as error:
        return _refuse(str(error))
    except click.UsageError as error:
        return _refuse(_usage(error, sys.argv[1:] if argv is None else argv))
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("argosy: interrupted", err=True)
        return INTERRUPTED
    except StepError as error:
        quote = f" [{_line(error.quote)}]" if error.quote and error.quote not in str(error) else ""
        told = f"; {_FREE_SOME}" if error.cause == "disk_full" else quote or _way_in(error)
        named = "" if error.cause == "unknown" else f"{error.cause}: "
        click.echo(f"argosy: {named}{_line(str(error))}{told}", err=True)
        return 2 if error.code == ExitCode.USAGE else 1
    except ApiError as error:
        nowhere = "; name another with -n, or have it made" if NO_NAMESPACE.search(str(error)) else ""
        click.echo(f"argosy: the cluster refused it: {_line(str(error))}{nowhere}", err=True)
        return 1
    except NobodyReads:
        return 0
    except OSError as error:
        if error.errno == ENAMETOOLONG:
            return _refuse(f"{error.filename}: {error.strerror}; name a shorter one")
        if error.errno == EACCES and error.filename:
            return _refuse(f"{error.filename}: {error.strerror}; give yourself the right to it, or name another")
        return _disk_full(error) if error.errno in (ENOSPC, EDQUOT) else _mistake_of_ours(error)
    except Exception as error:
        return _mistake_of_ours(error)


_INSTALLED = ("namespaces", "serviceaccounts", "roles", "rolebindings", "persistentvolumeclaims", "cronworkflows")
"""What `argosy install` applies first of all, and what of a trigger; who runs trainings needs no right to them."""


def _way_in(error: StepError) -> str:
    """What a person does about a cluster that does not answer, or lets nobody in."""
    if isinstance(error, ApiSilent) and UNHOOKED in str(error):
        return "; whoever administers the cluster has it answer again, or takes its configuration away"
    if isinstance(error, ApiSilent):
        here = "see that `kubectl version` answers, or name another cluster with --context or --kubeconfig"
        return f"; {here}; runs go on meanwhile, and are read from their store: argosy ls s3://…"
    if error.cause == "config_or_rbac" and (str(error) == "Unauthorized" or "system:anonymous" in str(error)):
        return "; the cluster takes no credentials of the kubeconfig: log in again until `kubectl auth whoami` answers"
    if error.cause == "config_or_rbac" and (denied := NOT_ALLOWED.search(str(error))):
        what = "; for submit, status, logs, top, stop and rm `argosy doctor` says how"
        if denied[1] in _INSTALLED:
            what = ", or apply what `argosy install` prints without --apply"
        return f"; whoever administers the cluster may allow it{what}"
    return ""


def _line(text: str) -> str:
    from argosy.workflows.cli.output import harmless

    return harmless(" ".join(text.split()))


def _refuse(message: str) -> int:
    click.echo(f"argosy: {_line(message)}", err=True)
    return 2


def _usage(error: click.UsageError, argv: list[str]) -> str:
    # An option without its value is refused before click knows whose it is.
    verb = next((f" {word}" for word in argv[:1] if word in VERBS), "")
    where = error.ctx.command_path if error.ctx is not None else f"argosy{verb}"
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        # By click's own measure --help is near to --step.
        near = get_close_matches(error.option_name, error.possibilities, cutoff=0.75)
        error = click.NoSuchOption(error.option_name, possibilities=near, ctx=error.ctx)
    own = ""
    if isinstance(error, click.NoSuchOption) and verb == " init":
        own = f"; the script's own follow --, as in argosy init train.py -- {error.option_name}"
    return f"{error.format_message().rstrip('.')}{own}; see {where} --help"


def _disk_full(error: OSError) -> int:
    if not error.filename:
        discard(sys.stdout.fileno())
    where = error.filename or "a file or the standard output"
    click.echo(f"argosy: disk_full: {where}: {error.strerror}; {_FREE_SOME}", err=True)
    return 1


def _mistake_of_ours(error: Exception) -> int:
    """Keep the traceback in a file: it is of use to us, not to the person at the terminal."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="argosy-error-", suffix=".txt", delete=False) as kept:
        traceback.print_exception(error, file=kept)
    text = f"{type(error).__name__}: {_line(str(error))}"
    click.echo(f"argosy: a mistake of ours: {text} (please report it with {kept.name})", err=True)
    return 1


if __name__ == "__main__":
    main()
