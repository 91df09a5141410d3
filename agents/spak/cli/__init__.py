"""The `spak` command: one module per verb, loaded only when it is called.

Each verb parses its arguments, calls the library and prints; exit codes and documents are those of
docs/cli.md. Errors become one sentence with a code and a hint (exit code of the error), never a traceback.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from spak import __version__

VERBS: dict[str, tuple[str, str]] = {
    "new": ("new", "write a spec of your own, from an example that runs"),
    "check": ("check", "parse and check specs"),
    "fmt": ("fmt", "format specs, comments kept"),
    "graph": ("graph", "draw the task graph of a spec, or what changed in it"),
    "lsp": ("lsp", "run the language server, for editors"),
    "edit": ("edit", "change a spec by typed operations"),
    "diff": ("diff", "show what changed in meaning between two specs"),
    "blame": ("blame", "show who gave each field of a spec its value, when and why"),
    "run": ("run", "start a run and advance it until it ends or waits"),
    "login": ("login", "store the token of a platform for spak run --server"),
    "logout": ("logout", "delete the stored token of a platform"),
    "step": ("step", "answer, or call the backend, and continue to the next stop"),
    "resume": ("resume", "continue after a crash or a stop"),
    "apply": ("apply", "bring what a run changed into the folder that it came from, or take it back"),
    "approve": ("approve", "answer an action that waits for approval"),
    "keys": ("keys", "manage keys that sign approvals"),
    "show": ("show", "show state, registers, pending question and best metric of a run"),
    "runs": ("runs", "list local runs"),
    "cancel": ("cancel", "end a run as cancelled"),
    "fork": ("fork", "start a new run from a record of another"),
    "replay": ("replay", "derive every commit again, without model or sandbox"),
    "ledger": ("ledger", "verify a ledger"),
    "export": ("export", "write a run into one file"),
    "verify-pack": ("verify_pack", "check a run with its statement: signature, records, replay"),
    "import": ("import_", "read a run from an exported file"),
    "report": ("report", "write a run's report as one HTML page"),
    "suite": ("suite", "keep runs as cases, add cases, check a suite"),
    "eval": ("eval_", "run suites under specs and compare them"),
    "analyze": ("analyze", "find waste and unused parts in runs, and edits that fix it"),
    "outer": ("outer", "propose edits of a spec, judge them, run campaigns"),
    "gate": ("gate", "judge actions without doing them"),
    "world": ("world", "ask what code defines, what depends on what, which tests a change needs"),
    "verify": ("verify", "check an artifact against the axioms of a spec"),
    "problem": ("problem", "check problems that kernels are measured on"),
    "gpu": ("gpu", "test the measuring of CUDA kernels on this machine's GPU"),
    "policy": ("policy", "check policies, evaluate them, and ask why"),
    "sandbox": ("sandbox", "test the sandbox"),
    "completion": ("completion", "print shell completion for bash, zsh or fish"),
    "models": ("models", "list the model backends and models that work here"),
    "explain": ("explain", "say what an error code means and what to do"),
    "compliance": ("compliance", "play the eleven compliance tests against a runtime"),
    "doctor": ("doctor", "check what is installed and works, and how to fix the rest"),
    "ask": ("ask", "say which strategy serves a request and why, and start it"),
    "repair": ("repair", "mend a failing test without a model, or say why not"),
    "guard": ("guard", "run a coding agent behind the walls, its changes as transactions"),
    "mcp": ("mcp", "offer our tools to clients of MCP, and use those of others, pinned"),
    "tune": ("tune", "tune a kernel in C for a problem, and write the result as a drop-in"),
    "demo": ("demo", "tune a C attention kernel on this machine, verify and replay it"),
}
"""Verb to its module and its line of help."""


class _Lazy(click.Group):
    """A group that knows its verbs by name and imports a module only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = VERBS.get(cmd_name)
        if found is None:
            return None
        command = import_module(f"spak.cli.{found[0]}").command
        assert isinstance(command, click.Command)
        if ctx.resilient_parsing:  # a shell asks for completions
            from spak.cli.completion import know_runs

            know_runs(command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The verbs by their table; to import every one for its help would take half a second."""
        found = [CompletionItem(name, help=line) for name, (_, line) in VERBS.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [item for item in found if item.value.startswith(incomplete)] + options

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the release, and the hashes of the laws and specs that ship and of the code that decides.

    Such a hash is what `cd FOLDER && sha256sum *.mg | sha256sum` gives (`*.spak` for specs, in the C locale).
    Source: seed 004, part two, 10.1; docs/adr/0096.
    """
    if not wanted or ctx.resilient_parsing:
        return
    from hashlib import sha256

    from spak import data

    click.echo(f"spak {__version__}")
    for folder, ending in (("specs/policy", "mg"), ("specs/laws", "mg"), ("specs/examples", "spak")):
        listing = "".join(
            f"{sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
            for file in sorted(data.path(folder).glob(f"*.{ending}"))
        )
        click.echo(f"{folder:<15} sha256:{sha256(listing.encode()).hexdigest()}")
    click.echo(f"{'kernel code':<15} sha256:{data.kernel_code()}")
    ctx.exit()


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
    help="Show the version, the hashes of the laws and specs that ship and of the deciding code, and exit.",
)  # fmt: skip
def spak() -> None:
    """Run agents as programs: specs are checked, runs are permitted, recorded and replayed."""


def main() -> None:
    """The console script."""
    from spak.cli.common import guarded

    sys.exit(guarded(spak))
