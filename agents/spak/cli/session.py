"""A local run as the verbs use it: its folder, its lease, its two projection files.

`begin` starts a run from a spec file, `reopen` takes one up. Both give a Session, which advances the run
under signals and a deadline and writes context.json and metrics.json at each stop.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from spak import begin as begin_
from spak import config
from spak.cli import common, recording
from spak.cli.artifacts import with_artifacts
from spak.cli.imported import must_be_ours
from spak.cli.reading import why
from spak.cli.run_folders import making
from spak.errors import LedgerError, SpecError, UsageError
from spak.evolve.suites.at_the_end import CaseChecks, checks_of
from spak.kernel.rules import Rules
from spak.kernel.state import State
from spak.lang import parse
from spak.lang.checks.policy import policy_file
from spak.lang.edit import Op, apply_all
from spak.lang.imports import resolve
from spak.lang.spec_files import folder_reader
from spak.ledger.files import FileLedgers
from spak.ledger.private import open_file
from spak.llm import Chooser, redactor
from spak.llm.recorded import Recorded
from spak.own import own
from spak.policy.law import Law
from spak.program import Mode
from spak.records import Record
from spak.repository import begun, past
from spak.runner import SHIPPED, Host, Run, Stop, View, view
from spak.runner.blobs import expand
from spak.runner.searches import Earlier
from spak.runner.secret_guard import found_in
from spak.runner.views import own_tests
from spak.runner.views.run_json import context
from spak.sandbox import slots
from spak.sandbox.at_home import AtHome, specials
from spak.workspace import Copied, Workspace
from spak.workspace.secret_files import walk

SEALED = "sealed"
"""Of the first record's notes: the folder of the case whose sealed checks judge the run."""


@dataclass(slots=True)
class Session:
    """A run held by this process. Close it."""

    run: Run
    folder: Path
    mode: Mode
    auto: int
    stop: Stop = "paused"
    in_place: bool = False
    """Whether what it changes is brought into the folder at each stop."""
    copied: Copied | None = None
    """What a new run's copy is a copy of."""

    @property
    def recordings(self) -> list[Recorded]:
        """The recordings that answer for models, where they were read."""
        backend = self.run.performer.host.backend
        made = backend.made if isinstance(backend, Chooser) else (backend,)
        return [item for item in made if isinstance(item, Recorded) and item.count]

    def advance(self, timeout: float | None = None, answer_now: bool = False) -> View:
        """Go on to the next stop; signals and the timeout leave the run resumable."""
        until = None if timeout is None else time.monotonic() + timeout
        with _signals(self.run, timeout):
            self.stop = self.run.advance(self.mode, self.auto, answer_now, until)
        seen = self.save()
        stopped = self.stop in ("paused", "interrupted") and seen.state == "waiting"
        return replace(seen, state="paused") if stopped else seen  # the model was at it, not a person

    def extend(self, extensions: Sequence[tuple[str, int]]) -> None:
        """Add to budgets, as `--extend` says. Raises: RunError, with those before the refused one granted."""
        for budget, by in extensions:
            self.run.extend(budget, by)

    def view(self) -> View:
        """The run as commands show it, with the prompt where a question waits."""
        state = self.run.state
        effect = state.r6
        waits = not state.ended and effect is not None and effect.cls == "ask" and effect.act != "approve"
        prompt = self.run.performer.prompt(self.run.pending()) if waits else None
        ledger = self.run.ledger
        budgets = self.run.rules.program.budgets
        good = state.ended and state.status == "succeeded"
        cause, rests_on = why(ledger, state)
        head, count = ledger.head, ledger.count
        seen = view(ledger.run, state, head, count, self.stop, prompt, budgets, cause, rests_on)
        seen = replace(seen, recorded=self.run.history.others.to_json())
        if good:
            tally = self.run.tally
            seen = replace(seen, checked=tally.checked, by_own_tests=own_tests.known(tally.apart))
        return with_artifacts(seen, self.folder, self.run.rules.r3, self.run.workspace.directory)

    def save(self) -> View:
        """Write the projections; the ledger is whole without them, so a full disk costs only a warning."""
        seen = self.view()
        try:
            _write(self.folder / "context.json", context(seen, self.run.state, self._output()))
            _write(self.folder / "metrics.json", {"run": seen.run, "state": seen.state, **seen.metrics})
        except OSError as error:
            common.say(f"spak: context.json and metrics.json are not up to date: {error.strerror}")
        return seen

    def _output(self) -> str:
        """What the last tool wrote; of a text whose blob is lost only the beginning."""
        found = self.run.history.output
        try:
            return str(expand(found, self.run.ledger.blobs))
        except LedgerError:
            return str(found.get("head", "")) if isinstance(found, dict) else ""

    def listen(self, listener: Callable[[Record, State], None]) -> None:
        """Call the listener with each record of the run and the state after it."""
        self.run.listeners.append(listener)

    def close(self) -> None:
        """Give back what the session holds and the run's lease."""
        try:
            self._give_back()
        finally:
            self.run.close()

    def _give_back(self) -> None:
        """Give the files of an ended run to who runs it: where root starts the sandbox they belong to a
        sandbox user, and git refuses such a folder."""
        try:
            if self.run.state.ended:
                slots.give_back(self.run.workspace.directory, os.geteuid(), os.getegid())
        except OSError as error:
            common.say(f"spak: the workspace still belongs to a sandbox user: {error.strerror}")


def begin(
    spec: Path,
    root: Path,
    *,
    inputs: Mapping[str, str] | None = None,
    mode: Mode | None = None,
    backend: str = "",
    proposer: str = "",
    workspace: Path | None = None,
    in_place: bool = False,
    seed: int | None = None,
    recorded: str | None = None,
    name: str = "",
    labels: Mapping[str, Any] | None = None,
    prior: Mapping[str, Earlier] | None = None,
    sealed: Path | None = None,
    history: Path | None = None,
    guards: Sequence[str] = (),
    law: Law | None = None,
    approvers: Sequence[Mapping[str, Any]] = (),
    edits: Sequence[Op] = (),
) -> Session:
    """Start a run of a spec file. Everything that is named is checked before the first record. `recorded`
    names a run whose answers are given again; `labels` are for people, in the first record; `prior` has the
    searches of an earlier run by task; `sealed` is the folder of the case whose sealed checks judge what the
    run made, `history` that of frozen commits (spak.repository.past); `guards` are shipped ones that the law
    asks for whatever the spec says. `law` is in the place of the configured one, and `approvers` are besides
    those that are configured. `edits` change the spec's text for this run.

    Raises: SpecError (exit 3), UnavailableError (7), UsageError (2), LedgerError.
    """
    parsed = parse(common.read_input(spec), str(spec))
    if edits:
        parsed = parse(apply_all(parsed, edits).text, str(spec))
    whole = resolve(parsed, folder_reader(spec))
    answers = None if recorded is None else recording.find(root, recorded, redactor(config.settings().llm))
    answering = None if answers is None else answers.backend()
    source = _source(spec, workspace)
    known = found_in(source, config.settings().shown_secrets)[1] if source is not None else ()
    try:
        made = begin_.plan(
            whole,
            inputs or {},
            mode=mode,
            backend=backend,
            proposer=proposer,
            answering=answering,
            known=known,
            prior=prior,
            sealed=None if sealed is None else checks_of(sealed, source),
            own=own(config.settings()),
            approvers=[*config.settings().approvers, *approvers],
            law=(config.law() if law is None else law).guarded(guards),
        )
        if source is not None:
            begin_.marked(made, source)
    except SpecError as error:
        texts = {**whole.texts, **policy_file(whole)}
        common.show_diagnostics(error.diagnostics, whole.parsed.text, str(spec), texts)  # type: ignore[arg-type]
        raise
    chosen = config.settings()
    host = config.knowing(made.host, chosen)
    name = name or common.run_id()
    folder = root / name
    with making(folder):
        if answers is not None:
            answers.keep(folder)
        place = _workspace(folder, chosen)
        copied = None
        if source is not None:
            copied = place.copy_in(source, chosen.wanted, root)
            copied.write(folder)
            begun.follow(place.git.repository, source)
        if history is not None:
            past.thaw(place.git.repository, history.read_bytes())
        else:
            past.require_whole(past.git(place.git.repository), made.program.history)
        host = placed(host, place, copied, chosen)
        there = str(workspace.resolve()) if in_place and workspace else ""
        body = made.genesis(
            name,
            place.snapshot(),
            seed,
            spec=spec.name.encode("utf-8", "replace").decode(),
            **({"in_place": there.encode("utf-8", "replace").decode()} if there else {}),
            **({"labels": dict(labels)} if labels else {}),
            **({SEALED: str(sealed.resolve())} if sealed else {}),
        )
        run = Run.create(FileLedgers(root), name, body, host, place)
    return Session(run, folder, made.mode, made.auto, in_place=in_place, copied=copied)


def reopen(
    root: Path,
    name: str,
    *,
    mode: Mode | None = None,
    backend: str = "",
    bare: bool = False,
    recorded: str | None = None,
) -> Session:
    """Take up a run: the lease, the replay, the workspace as R3 says. `bare`: nothing will be done in it.
    `recorded` names a recording that answers from here on.

    Raises: LedgerError, UnavailableError, RunError; UsageError `usage.mode`.
    """
    ledgers = FileLedgers(root)
    first = ledgers.genesis(name)
    about = first.body.get("host", {})
    rules = Rules.of(first.body)
    chosen = config.settings()
    asked = backend or str(about.get("backend", ""))
    if not bare:
        must_be_ours(root / name, first.body, chosen)
    ours = SHIPPED if bare else own(chosen)
    host = Host() if bare else _sealed(config.host(chosen, rules.program, asked, ours), about)
    host = host if bare else config.knowing(host, chosen)
    folder = root / name
    answers = None if recorded is None else recording.find(root, recorded, redactor(chosen.llm))
    if not bare and asked == "recorded":
        host = _answered(host, folder, answers)
    copied = Copied.read(folder)
    place = _workspace(folder, chosen)
    host = placed(host, place, copied, chosen)
    begun = about.get("mode")
    known: Mode | None = begun if begun in config.MODES else None
    parsed = parse(first.body["rules"]["spec"])
    picked, auto = begin_.pick_mode(mode or known, parsed, rules.program, chosen, asked)
    if mode is not None and not bare:
        begin_.asked_by_proposers(rules.program, host, picked)
    run = Run.open(ledgers, name, host, place)
    if not bare and not run.state.ended and (error := begin_.lacking(about, ours)):
        run.close()
        raise error
    if run.discarded is not None:
        common.say(f"spak: {run.discarded}")
    if answers is not None:
        answers.keep(folder)
    auto = int(about.get("auto_steps", 0)) or auto
    return Session(run, folder, picked, auto, in_place=bool(about.get("in_place")))


def _answered(host: Host, folder: Path, answers: recording.Answers | None = None) -> Host:
    """The host with the recording that is named now, else with the one that the run began with."""
    found = answers or recording.kept(folder)
    return host if found is None else host.answered_by(found.backend())


def _sealed(host: Host, about: Mapping[str, Any]) -> Host:
    """The host with the sealed checks that the first record names."""
    return replace(host, sealed=CaseChecks(Path(str(about[SEALED])))) if about.get(SEALED) else host


def _source(spec: Path, given: Path | None) -> Path | None:
    """What is copied into the workspace: --workspace, else the folder FILE beside FILE.spak."""
    if given is not None:
        if not given.is_dir():
            raise UsageError("usage.workspace", f"{given} is not a folder", "name a folder with --workspace")
        return given
    folder = spec.resolve().with_suffix("")
    return folder if folder.is_dir() else None


def _workspace(folder: Path, chosen: config.Settings) -> Workspace:
    wanted = chosen.wanted
    return Workspace(folder / "workspace", folder / "store", bounds=wanted.bounds, wait_s=wanted.wait_s)


def placed(host: Host, place: Workspace, copied: Copied | None, chosen: config.Settings) -> Host:
    """The host for a run in a copy: its jobs find it also at the path of the folder that was copied, and see
    what of that is only shown, without files of secrets, sockets and pipes."""
    if copied is None or host.launcher is None:
        return host
    secret = (found for top in copied.shown for found in walk(Path(copied.source), top=top))
    masked = [path for path in secret if not any(fnmatchcase(path, one) for one in chosen.shown_secrets)]
    masked += [path for top in copied.shown for path in specials(copied.source, top)]
    places = (place.directory, place.checkout.folder)
    about = copied.source, copied.shown, copied.scratch, masked
    sealed = host.sealed
    if isinstance(sealed, CaseChecks):
        sealed = replace(sealed, launcher=AtHome(host.launcher, None, *about))
    launcher = AtHome(host.launcher, places, *about)
    return replace(host, launcher=launcher, hint=copied.hint, sealed=sealed)


def _write(path: Path, value: Any) -> None:
    aside = path.with_suffix(".new")
    with open_file(aside, "w", encoding="utf-8") as file:
        file.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")
    aside.replace(path)


@contextmanager
def _signals(run: Run, timeout: float | None) -> Iterator[None]:
    """Ctrl+C, SIGTERM and the timeout stop the run between two writes, and tools at once."""

    def stop(signum: int, frame: object) -> None:
        run.performer.cancel.set()

    watched = [signal.SIGINT, signal.SIGTERM, signal.SIGALRM]
    before = {number: signal.signal(number, stop) for number in watched}
    if timeout is not None:
        signal.setitimer(signal.ITIMER_REAL, max(timeout, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def fork(root: Path, parent: str, at: int) -> tuple[Session, int | None]:
    """A new run that takes over the proposals of another before seq `at`; where copying stopped early, if so.

    The workspace is what the copied proposals left: the root that the new state names, from the parent's
    store. Raises: RunError `run.fork`, LedgerError.
    """
    from spak.runner import fork as forking

    ledgers = FileLedgers(root)
    reader = ledgers.viewer(parent)
    copy = forking.from_snapshot(reader, at)
    if copy is None:
        copy = forking.copied((record for record, _ in reader.read()), at)
    name = common.run_id()
    folder = root / name
    about = {**copy.genesis.body["host"], "in_place": ""}
    rules = Rules.of(copy.genesis.body)
    chosen = config.settings()
    asked = str(about.get("backend", ""))
    must_be_ours(root / parent, copy.genesis.body, chosen)
    ours = own(chosen)
    if error := begin_.lacking(about, ours):
        raise error
    host = config.knowing(_sealed(config.host(chosen, rules.program, asked, ours), about), chosen)
    if asked == "recorded":
        host = _answered(host, root / parent)
    with making(folder):
        if (root / parent / recording.FILE).is_file():
            with open_file(folder / recording.FILE, "wb") as file:
                file.write((root / parent / recording.FILE).read_bytes())
        for kept in ("store", "blobs"):
            if (root / parent / kept).is_dir():
                shutil.copytree(root / parent / kept, folder / kept, dirs_exist_ok=True)
        place = _workspace(folder, chosen)
        copied = Copied.read(root / parent)
        if copied is not None:
            copied.write(folder)
        host = placed(host, place, copied, chosen)
        body = forking.genesis_of(copy, name, parent, at, about)
        if copy.carried is None:
            run = Run.create(ledgers, name, body, host, place)
        else:
            lines = reader.lines(1, copy.carried.end)
            run = forking.carry(ledgers, name, body, host, place, copy.carried, lines)
        try:
            run.adopt(copy.proposals)
            place.draw_on(run.ledger.blobs)
            place.restore(run.state.r3)
        except BaseException:
            run.close()
            raise
    known = about.get("mode")
    mode: Mode = known if known in config.MODES else "stepwise"
    return Session(run, folder, mode, int(about.get("auto_steps", 1) or 1)), copy.stopped_at
