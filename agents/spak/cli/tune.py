"""`spak tune FILE.c --problem P`: from a kernel to a tuned one, without writing a spec.

Beside FILE.c it writes FILE_tuner.spak, the spec that it runs, with its folder FILE_tuner, and what comes of
it as the folder FILE_tuned: source, header, build line, test and Python wrapper. A spec that exists is run as
it is. The run is one like every other: `--resume RUN` continues it, or writes the folder of one that
`spak resume` or somebody else ended.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import UsageError

if TYPE_CHECKING:
    from spak.cli.session import Session
    from spak.runner import View
    from spak.tuning.kernel import Facts, Kernel, Place

EVALUATIONS = 40


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--problem", required=True, metavar="P", help="What it computes: one that ships, or a file .py."
)
@click.option("--against", default="", metavar="LIBRARY", help="Then measure it beside numpy or torch.")
@click.option(
    "--evaluations", type=click.IntRange(min=1, max=10_000), show_default=str(EVALUATIONS),
    help="Measured at most, your kernel among them.",
)  # fmt: skip
@click.option(
    "--threads", type=click.IntRange(min=1, max=64), show_default="1",
    help="Threads that candidates may use; the wall's time decides then.",
)  # fmt: skip
@click.option("--backend", default="", help="A model that rewrites the kernel's SPAK-EVOLVE blocks.")
@common.from_option
@click.option(
    "--seed", type=click.IntRange(min=0, max=2**53 - 1), help="Seed of the search; drawn if not given."
)
@click.option("--resume", default="", metavar="RUN", help="Continue RUN of this kernel, or write its result.")
@common.timeout_option
@common.runs_option
@common.json_option
def command(
    file: Path,
    problem: str,
    against: str,
    evaluations: int | None,
    threads: int | None,
    backend: str,
    recorded: str | None,
    seed: int | None,
    resume: str,
    timeout: float | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Tune the C kernel FILE for the problem P and write the result next to it."""
    from spak import config
    from spak.cli import session
    from spak.cli.progress import progress
    from spak.files.scratch import Scratch
    from spak.tuning import against as comparing
    from spak.tuning import kernel as kernels

    if not re.fullmatch(r"[A-Za-z_]\w{0,60}", file.stem, re.ASCII) or file.suffix != ".c":
        hint = "letters, digits and _, then .c: files with names of it are written next to it"
        raise UsageError("usage.arguments", f"{file.name} is no name of a kernel in C", hint)
    if resume and any(given is not None for given in (evaluations, threads, seed)):
        hint = "a run keeps those that it began with"
        raise UsageError("usage.arguments", "--resume goes without --evaluations, --threads and --seed", hint)
    source = common.read_input(file, 1 << 20)
    answering = common.backend_of(backend, recorded)
    name, text = kernels.problem_text(problem, file.parent)
    settings = config.settings()
    toolchain = config.toolchain(settings.binds)
    call = comparing.known(against, name, toolchain) if against else None
    with Scratch("tune") as folder:
        folder.chmod(0o755)
        place = kernels.Place(config.box(settings), toolchain, settings.limits, folder)
        if resume:
            held, facts = _reopened(resume, runs_dir, (name, text), place, answering, recorded)
        else:
            kernel = kernels.checked(source, file.name, name, text, place)
            spec = _spec(file, kernel, evaluations, threads, list(toolchain.programs), answering)
            facts = kernel.facts
            _may_write(file, facts)
            root = common.runs_dir(runs_dir)
            held = session.begin(
                spec, root, mode="full_auto", seed=seed, backend=answering, recorded=recorded
            )
        try:
            _may_write(file, facts)
            run = held.run.ledger.run
            again = f"spak tune {shlex.quote(str(file))} --problem {shlex.quote(problem)} --resume {run}"
            if not as_json and not held.run.state.ended:
                common.say(f"run {run}: tuning; stop with Ctrl+C, continue with: {again}")
            with progress(held, enabled=not as_json):
                seen = held.advance(timeout)
        finally:
            held.close()
        document: dict[str, Any] = {**seen.to_json(), "spec": str(_spec_of(file))}
        document |= {"dropin": None, "against": None}
        if seen.state == "succeeded":
            made = _dropin(file, held, facts, place)
            document["dropin"] = made
            if call is not None:
                library = Path(made["folder"]) / f"lib{facts.prototype.symbol}.so"
                several = int(seen.metrics.get("threads", 1))
                found = comparing.compared(library.read_bytes(), facts, call, place, threads=several)
                document["against"] = found.to_json()
    if as_json:
        common.emit(document)
    else:
        _print(document, seen, again)
    return common.EXIT[seen.state]


def _reopened(
    run: str,
    runs_dir: Path | None,
    problem: tuple[str, str],
    place: Place,
    backend: str,
    recorded: str | None,
) -> tuple[Session, Facts]:
    """The run of an earlier `spak tune`, and what its problem says, by the text that the run keeps. A run
    that ended stays as it is.

    Raises: UsageError `tune.spec`; as `spak resume`."""
    from spak.cli import session
    from spak.ledger.files import FileLedgers
    from spak.tuning import kernel as kernels

    root, found = common.find_run(run, runs_dir)
    rules = FileLedgers(root).genesis(found).body["rules"]
    name, text = problem
    if f'problem: "{name}"' not in rules["spec"] or "best.c" not in rules["spec"]:
        hint = f"name the problem that it is for; spak show {found} has the spec"
        raise UsageError("tune.spec", f"run {found} tunes no kernel for the problem {name}", hint)
    text = rules.get("problems", {}).get(name, text)
    with kernels.session(name, text, place) as opened:
        facts = kernels.Facts.of(name, text, opened)
    return session.reopen(root, found, backend=backend, recorded=recorded), facts


def _spec_of(file: Path) -> Path:
    return file.with_name(f"{file.stem}_tuner.spak")


def _spec(
    file: Path,
    kernel: Kernel,
    evaluations: int | None,
    threads: int | None,
    programs: list[str],
    backend: str,
) -> Path:
    """The spec next to the kernel: the one that exists, else a new one, with its folder of files.

    Raises: UsageError `tune.spec`, `tune.threads`, `usage.arguments`, `usage.file`."""
    from spak.tuning import spec as specs

    path = _spec_of(file)
    folder = path.with_suffix("")
    blocks = specs.BLOCK in kernel.source
    if backend and not blocks:
        hint = "mark what it may rewrite (docs/evolve.md), or leave --backend and --from out"
        raise UsageError("usage.arguments", f"a model has nothing to rewrite in {file.name}", hint)
    draft = specs.draft(kernel, file.name, evaluations or EVALUATIONS, programs, bool(backend), threads or 1)
    if path.exists():
        _same_problem(path, kernel, {"--evaluations": evaluations, "--threads": threads})
        common.say(f"{path.name} exists and is run as it is; remove it for a new one")
    else:
        common.say(f"{path.name}: {specs.SAYS[draft.how]}")
        if blocks and not backend:
            common.say("its SPAK-EVOLVE blocks stay as they are: --backend NAME has a model rewrite them")
    try:
        folder.mkdir(exist_ok=True)
        for name, content in draft.files.items():
            if name == "naive.c" or not (folder / name).exists():
                (folder / name).write_bytes(content)
        if not path.exists():
            path.write_text(draft.text, encoding="utf-8")
    except OSError as error:
        raise UsageError("usage.file", f"{error.filename}: {error.strerror}", "check its rights") from error
    return path


def _same_problem(path: Path, kernel: Kernel, options: Mapping[str, int | None]) -> None:
    """Whether a spec that exists is for this problem. Raises: UsageError `tune.spec`."""
    problem = kernel.facts.name
    if f'problem: "{problem}"' not in common.read_text(path):
        hint = f"remove it, or name the problem that it is for; spak run {path} runs it"
        raise UsageError("tune.spec", f"{path.name} exists and is not for the problem {problem}", hint)
    for option in (name for name, value in options.items() if value is not None):
        hint = f"change {path.name}, or remove the file"
        raise UsageError("tune.spec", f"{path.name} exists, and {option} is for a new one", hint)


def _target(file: Path) -> Path:
    return file.with_name(f"{file.stem}_tuned")


def _may_write(file: Path, facts: Facts) -> None:
    """Refuse before the run what would write over somebody's files. Raises: UsageError `usage.exists`."""
    from spak.tuning.dropin import MARK

    target, symbol = _target(file), facts.prototype.symbol
    if not target.exists() and not target.is_symlink():
        return
    source = target / f"{symbol}.c"
    if not source.is_file() or not common.read_input(source).startswith(MARK.encode()):
        hint = "move it away: the tuned kernel is written there"
        raise UsageError("usage.exists", f"{target.name} is there already and holds no tuned kernel", hint)


def _dropin(file: Path, held: Session, facts: Facts, place: Place) -> dict[str, Any]:
    """Build the result in the sandbox, run its test, and write it next to the kernel.

    Raises: RunError `tune.dropin`; UsageError `usage.file`; UnavailableError."""
    from spak.cli.report import processor
    from spak.files import beneath
    from spak.tools.cc import COMPILER_MARK, MARK, marked
    from spak.tuning import dropin
    from spak.tuning import kernel as kernels

    run = held.run.ledger.run
    best = beneath.read_beneath(held.folder / "workspace", "best.c")
    with kernels.session(facts.name, facts.text, place) as problem:
        found = dropin.cases(problem)
        shapes = {case.n: problem.shapes(case.n) for case in found}
    compiler = marked(best, COMPILER_MARK) or "gcc"
    made = dropin.files(
        best, facts, found, shapes, f"run {run}, on {processor()}", compiler, marked(best, MARK).split()
    )
    said, library = dropin.tried(made, facts, place)
    target = _target(file)
    try:
        target.mkdir(exist_ok=True)
        for name, content in {**made, f"lib{facts.prototype.symbol}.so": library}.items():
            (target / name).write_bytes(content)
    except OSError as error:
        raise UsageError("usage.file", f"{error.filename}: {error.strerror}", "check its rights") from error
    return {"folder": str(target), "files": sorted([*made, f"lib{facts.prototype.symbol}.so"]), "test": said}


def _print(document: Mapping[str, Any], seen: View, again: str) -> None:
    from spak.runner.views.report import interval

    metrics, say = seen.metrics, common.say
    say(f"run {seen.run}: {seen.word}")
    if "speedup" in metrics and seen.state != "failed":
        say(f"your kernel   {metrics['baseline_ms']:.3f} ms")
        say(f"tuned         {metrics['best_ms']:.3f} ms, {metrics['speedup']:.2f} times as fast")
        if "threads" in metrics:
            say(f"threads       {metrics['threads']} at most; by the wall's time, at the largest size")
        if "speedup_low" in metrics:
            say(f"interval      {interval(metrics)}")
    if seen.state == "failed":
        say("nothing that was tried is faster than your kernel, as far as its measurements show")
    if document["dropin"]:
        say(f"drop-in       {document['dropin']['folder']}: {document['dropin']['test']}")
    if found := document["against"]:
        low, middle, high = found["ratio"]
        chosen = f" ({found['kernel']})" if found["kernel"] else ""
        say(f"against       {found['library']} {found['version']}, {found['call']}{chosen}")
        say(f"              tuned is {middle:.2f} times as fast ({low:.2f} to {high:.2f}, 95 %)")
    if document["dropin"]:
        say(f"next: sh {document['dropin']['folder']}/build.sh")
    elif seen.state in ("paused", "running"):
        say(f"next: {again}")
    else:
        say(f"next: spak show {seen.run}")
