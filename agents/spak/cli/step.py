"""`spak step [RUN] --resume`: give the pending answer, or call the backend, and go on to the next stop."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from spak.cli import common
from spak.errors import RunError, UsageError


@click.command()
@click.argument("run", default="latest")
@click.option("--resume", is_flag=True, help="Continue; a step always does, so this changes nothing.")
@click.option(
    "--answer-file", type=click.Path(path_type=Path), help="A file that holds the answer; - reads stdin."
)
@click.option("--answer", help="The answer itself.")
@click.option("--backend", default="", help="The backend that answers if no answer is given.")
@common.extend_option
@common.from_option
@common.timeout_option
@common.runs_option
@common.json_option
def command(
    run: str,
    resume: bool,
    answer_file: Path | None,
    answer: str | None,
    backend: str,
    extensions: tuple[tuple[str, int], ...],
    recorded: str | None,
    timeout: float | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Answer the question that RUN waits for and continue to the next stop."""
    from spak.cli import session, show

    if answer is not None and answer_file is not None:
        raise UsageError("usage.arguments", "give --answer or --answer-file, not both", "")
    text = _text(answer, answer_file)
    root, name = common.find_run(run, runs_dir)
    asked = common.backend_of(backend, recorded)
    held = session.reopen(root, name, backend=asked, recorded=recorded)
    try:
        held.extend(extensions)
        if text is None:
            return show.advance_and_show(held, as_json, timeout, answer_now=True)
        if held.run.state.ended or held.run.pending().act not in ("ask", "plan"):
            return _repeated(held, text, as_json)
        held.run.answer(text)
        return show.advance_and_show(held, as_json, timeout)
    finally:
        held.close()


def _repeated(held: object, text: str, as_json: bool) -> int:
    """An answer that nobody waits for: the same as the last one is done already, another is a fork."""
    from spak.cli import session, show

    assert isinstance(held, session.Session)
    pending = held.run.state.r6
    if pending is not None and pending.act == "approve":
        raise RunError(
            "run.not_waiting",
            f"run {held.run.ledger.run} waits for a signed approval, not for an answer",
            f"spak approve {held.run.ledger.run}",
        )
    last = held.run.last_answer()
    if last == text:
        return show.show(held.save(), as_json)
    raise RunError(
        "run.not_waiting",
        f"run {held.run.ledger.run} is not waiting for an answer",
        "to try another answer: spak fork RUN --at SEQ of the answer",
    )


def _text(answer: str | None, answer_file: Path | None) -> str | None:
    if answer_file is None:
        return answer
    data = sys.stdin.buffer.read() if str(answer_file) == "-" else common.read_input(answer_file)
    return common.decoded(data, answer_file)
