"""`spak run FILE`: start a run and advance it until it ends or waits, here or on a platform."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import UsageError

if TYPE_CHECKING:
    from spak.cli.session import Session
    from spak.runner.searches import Earlier

MODES = click.Choice(["stepwise", "semi_auto", "full_auto"])


@click.command()
@click.argument("file")
@click.option(
    "--mode", type=MODES, help="Where to stop; the default is CONFIG's, or full_auto with a backend."
)
@click.option("--backend", default="", help="Who answers questions, e.g. manual.")
@common.from_option
@click.option("--proposer", default="", help="Who fills plans: a generator's name, or `model`.")
@click.option("--input", "inputs", multiple=True, metavar="K=V", help="A value for INPUTS; repeat for more.")
@click.option(
    "--workspace", type=click.Path(path_type=Path), help="A folder to copy into the run's workspace."
)
@click.option("--in-place", is_flag=True, help="Work in the folder itself instead of a copy.")
@common.timeout_option
@click.option(
    "--seed", type=click.IntRange(min=0, max=2**53 - 1), help="Seed of the run; drawn if not given."
)
@click.option(
    "--prior", metavar="RUN", help="A search begins with what an earlier RUN found in the same SPACE."
)
@click.option(
    "--sealed", metavar="CASE", help="The case whose sealed checks judge what the run made, at its end."
)
@common.progress_option
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write a JUnit report there.")
@click.option(
    "--server", metavar="URL", help="Run it on a platform: FILE is TEAM/SPEC, with @VERSION or @TAG."
)
@click.option(
    "--files", type=click.Path(path_type=Path), metavar="DIR", help="With --server: the files it works on."
)
@click.option("--source", default="", metavar="NAME", help="With --server: fetch the files from this source.")
@click.option("--ref", default="", metavar="REF", help="With --source: the branch or tag; else its default.")
@click.option(
    "--artifacts",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="With --wait: download the files that it made into DIR.",
)
@click.option("--wait", is_flag=True, help="With --server: show its records until it ends or waits.")
@click.option(
    "--label", "labels", multiple=True, metavar="L", help="With --server: a label; repeat for more."
)
@click.option("--queue", default="", metavar="Q", help="With --server: the queue of the runners.")
@click.option(
    "--idempotency-key",
    default="",
    metavar="K",
    help="With --server: the same key starts one run only.",
)
@common.runs_option
@common.json_option
def command(
    file: str,
    mode: str | None,
    backend: str,
    recorded: str | None,
    proposer: str,
    inputs: tuple[str, ...],
    workspace: Path | None,
    in_place: bool,
    timeout: float | None,
    seed: int | None,
    prior: str | None,
    sealed: str | None,
    progress: bool | None,
    junit: Path | None,
    server: str | None,
    files: Path | None,
    source: str,
    ref: str,
    artifacts: Path | None,
    wait: bool,
    labels: tuple[str, ...],
    queue: str,
    idempotency_key: str,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Start a run of FILE and advance it until it ends or waits."""
    from spak import config
    from spak.cli import session, show

    away = {"--files": files, "--wait": wait, "--label": labels, "--queue": queue}
    away |= {"--idempotency-key": idempotency_key, "--source": source, "--ref": ref}
    away |= {"--artifacts": artifacts}
    here = {"--workspace": workspace, "--in-place": in_place, "--proposer": proposer, "--from": recorded}
    here |= {"--seed": seed is not None, "--runs-dir": runs_dir}
    here |= {"--no-progress" if progress is False else "--progress": progress is not None}
    if junit is not None and (junit.is_dir() or not junit.parent.is_dir()):
        raise UsageError(
            "usage.file", f"{junit} is not a place for a file", "name a file in a folder that exists"
        )
    if server is not None:
        from spak.cli import remote

        _none_of(here, "a platform decides it: leave it out with --server")
        if (junit or artifacts or timeout is not None) and not wait:
            raise UsageError(
                "usage.arguments", "--junit, --artifacts and --timeout need --wait", "add --wait"
            )
        if (source and files) or (ref and not source):
            raise UsageError("usage.arguments", "--ref needs --source, which takes no --files", "choose one")
        order = remote.Order(
            file, files, wait, timeout, pairs(inputs), labels, mode, backend, queue, idempotency_key, junit,
            source, ref, artifacts, prior, sealed,
        )  # fmt: skip
        return remote.run(server, order, as_json)
    _none_of(away, "it needs --server URL")

    if in_place and workspace is None:
        raise UsageError("usage.arguments", "--in-place needs --workspace", "name the folder to work in")
    held = session.begin(
        Path(file),
        common.runs_dir(runs_dir),
        inputs=pairs(inputs),
        mode=mode,  # type: ignore[arg-type]
        backend=common.backend_of(backend, recorded),
        recorded=recorded,
        proposer=proposer,
        workspace=workspace,
        in_place=in_place,
        seed=seed,
        prior=None if prior is None else _earlier(prior, runs_dir),
        sealed=config.settings().sealed if sealed is None else Path(sealed),
    )
    if held.copied is not None:
        common.say(f"spak: {held.copied.line}")
    code = show.advance_and_show(held, as_json, timeout, progressing=progress)
    return code if junit is None else _write_junit(held, Path(file).stem, junit, code)


def _earlier(run: str, runs_dir: Path | None) -> dict[str, Earlier]:
    """The searches of a run, by task. Raises: UsageError `usage.run`; LedgerError."""
    from spak.ledger.files import FileLedgers
    from spak.runner.searches import earlier

    root, name = common.find_run(run, runs_dir)
    reader = FileLedgers(root).reader(name)
    try:
        return earlier(record for record, _ in reader.read())
    finally:
        reader.close()


def _none_of(options: dict[str, Any], why: str) -> None:
    given = next((name for name, value in options.items() if value), None)
    if given is not None:
        raise UsageError("usage.arguments", f"{given} cannot be used here", why)


def _write_junit(held: Session, name: str, file: Path, code: int) -> int:
    """Write the report; what the run was shown as is printed already, so a failure is said beside it."""
    from spak.runner.views.junit import junit

    ledger = held.run.ledger
    text = junit(name, (record for record, _ in ledger.read()), blobs=ledger.blobs)
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        common.say(f"spak: {file}: {error.strerror} [usage.file]")
        return code or 2
    return code


def pairs(inputs: tuple[str, ...]) -> dict[str, str]:
    """The values of `--input K=V`. Raises: UsageError `usage.arguments`."""
    found = {}
    for item in inputs:
        name, sign, value = item.partition("=")
        if not sign or not name:
            raise UsageError("usage.arguments", f"--input {item!r} is not K=V", "for example --input n=512")
        found[name] = value
    return found
