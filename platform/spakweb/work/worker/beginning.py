"""The beginning of a run on a worker: compile the version, fetch and fill in its files, write the genesis.

Takes the row of a queued run; gives a Runner that holds its lease. What cannot begin (a spec that does not
compile, no sandbox, no backend) raises before anything is written. A fork copies proposals of its parent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from spak import config, data
from spak.begin import lacking, marked, pick_mode, plan
from spak.errors import RunError
from spak.evolve.suites.model import HISTORY
from spak.lang import parse
from spak.ports import Backend
from spak.program import Mode, Program
from spak.records import Authority, Record
from spak.repository import past
from spak.runner import Host
from spak.runner import Run as Runner
from spak.runner import fork as forking
from spak.secrets.redact import Redactor
from spak.workspace import Workspace
from spakweb.ground.teams.law import law_of
from spakweb.store.ledger import packs, priors, uploads
from spakweb.store.ledger.blobs import unleased
from spakweb.store.ledger.store import DatabaseLedger, DatabaseLedgers
from spakweb.store.ledger.workspaces import folder_of
from spakweb.store.runs.models import Run, RunBlob, RunText
from spakweb.store.runs.signing import approvers, may_approve
from spakweb.store.sources.freeze import files_of
from spakweb.store.specs.facts import ours
from spakweb.store.specs.team_files import EXAMPLES, TeamFiles
from spakweb.work.worker.sealed_checks import sealed_of
from spakweb.work.worker.team_secrets import knowing, of_team

PIECE = 1_000
"""Records of a parent that a fork reads, or takes over, between two looks at whether it is still wanted."""


def begin(row: Run, ledgers: DatabaseLedgers, place: Workspace) -> Runner:
    """Raises: SpecError, UnavailableError, LedgerError, RunError."""
    if row.parent is not None:
        return _forked(row, row.parent, ledgers, place)
    own = RunText.objects.select_related("spec__team").filter(run=row).first()
    if row.version is None and own is None:
        raise RunError("run.no_spec", "the version of this run is gone", "start it again from its spec")
    spec = own.spec if own is not None else row.version.spec
    whole, taken = TeamFiles.of(spec).taking((own and own.text) or row.version.text)
    mode = row.mode if row.mode in config.MODES else None
    signers = approvers(may_approve(row.team))
    made = plan(whole, row.inputs, mode=mode, backend=row.backend, sandbox=row.sandbox,
                answering=_recorded(row, own), approvers=signers, law=law_of(row.team),
                prior=priors.read(row), sealed=sealed_of(row), own=ours())  # fmt: skip
    known = Redactor([*config.settings().llm.secrets(), *of_team(row.team.slug).values()])
    source = files_of(row, folder_of(row.key), made.program.history, past.recognised(known.holds))
    fill(row, place, source_of(spec.slug))
    thaw(row, place)
    marked(made, place.directory)
    row.mode, row.takes_in = made.mode, sorted(one.pk for one in taken)
    root = place.snapshot()
    if place.travels:
        place.push(root, unleased(row.pk))
    body = made.genesis(row.key, root, own.seed if own is not None else None, spec=row.name,
                        **({"source": source} if source else {}))  # fmt: skip
    run = Runner.create(ledgers, row.key, body, knowing(made.host, row.team.slug), place)
    ledger = run.ledger
    if not isinstance(ledger, DatabaseLedger) or ledger.row is not row:  # else it came with the genesis
        Run.objects.filter(pk=row.pk).update(mode=row.mode, takes_in=row.takes_in)
    return run


def fill(row: Run, place: Workspace, source: Path | None) -> None:
    """Put the run's files into its workspace: those that were brought for it, else those of an example.

    Raises: UsageError `upload.*`; RunError `workspace.*`.
    """
    if row.files is not None:
        with uploads.opened(row.files) as archive:
            place.unpack_in(archive, uploads.limits(), row.files.root, row.files.folder)
    elif source is not None and not any(place.directory.iterdir() if place.directory.exists() else ()):
        place.copy_in(source)


def thaw(row: Run, place: Workspace) -> None:
    """Bring the commits that its jobs see to this host. Raises: RunError `git.*`, `upload.changed`."""
    if row.history:
        past.thaw(place.git.repository, packs.content(row.history, HISTORY))


def host_of(row: Run, program: Program) -> Host:
    """What the run uses on this worker; never a sandbox that is less strict than was asked for.

    Raises: UnavailableError.
    """
    made = config.host(replace(config.settings(), least=row.sandbox), program, row.backend, ours())
    made = replace(made, sealed=sealed_of(row))
    answering = _recorded(row, RunText.objects.filter(run=row).first())
    return knowing(made if answering is None else made.answered_by(answering), row.team.slug)


def _recorded(row: Run, own: RunText | None) -> Backend | None:
    """Who answers with the recording of a case, where the run was started with one."""
    return packs.answers(own.pack) if own is not None and own.pack and row.backend == "recorded" else None


def source_of(slug: str) -> Path | None:
    """The files that a shipped example works on, for a spec of its name."""
    folder = data.path(EXAMPLES) / slug.replace("-", "_")
    return folder if folder.is_dir() else None


def _forked(row: Run, parent: Run, ledgers: DatabaseLedgers, place: Workspace) -> Runner:
    from spak.kernel.rules import Rules

    at = row.parent_seq or 0
    copy = _copied(row, parent, ledgers)
    rules = Rules.of(copy.genesis.body)
    if error := lacking(copy.genesis.body["host"], ours()):
        raise error
    host = host_of(row, rules.program)
    asked: Mode = row.mode if row.mode in config.MODES else "stepwise"
    text = parse(copy.genesis.body["rules"]["spec"])
    mode, _ = pick_mode(asked, text, rules.program, config.settings(), row.backend)
    about = {**copy.genesis.body["host"], "run": row.key, "mode": mode, "in_place": ""}
    given = RunBlob.objects.filter(run=parent).values_list("digest", "size")
    RunBlob.objects.bulk_create(  # the parent has them for as long as this run goes on
        [RunBlob(run=row, digest=digest, size=size) for digest, size in given], ignore_conflicts=True
    )
    draw_from_parents(row, place)
    run = Runner.create(
        ledgers, row.key, forking.genesis_of(copy, row.key, parent.key, at, about), host, place
    )
    place.draw_on(run.ledger.blobs)
    return _adopting(row, run, copy.proposals)


def draw_from_parents(row: Run, place: Workspace) -> None:
    """A fork of a fork may go back behind what the first one did itself."""
    parent = row.parent
    while parent is not None:
        place.draw_from(folder_of(parent.key) / "store")
        parent = parent.parent


def copied_on(row: Run, parent: Run, run: Runner) -> Runner:
    """A fork that was taken up: the rest of the proposals, if whoever began it died while it copied them."""
    if row.projected:
        return run
    with closing_if_it_fails(run):
        copy = _copied(row, parent, DatabaseLedgers())
        mine = sum(record.authority == Authority.PROPOSAL for record, _ in run.ledger.read()) - 1
    return _adopting(row, run, copy.proposals[mine:]) if mine < len(copy.proposals) else run


class _Cancelled(Exception):
    pass


def _copied(row: Run, parent: Run, ledgers: DatabaseLedgers) -> forking.Copied:
    """What the fork takes over; nothing when it is cancelled while that is read."""

    def records() -> Iterator[Record]:
        for record, _ in ledgers.reader(parent.key).read():
            if record.seq % PIECE == 1 and _cancelled(row):
                raise _Cancelled
            yield record

    try:
        return forking.copied(records(), row.parent_seq or 0)
    except _Cancelled:
        first = next(iter(ledgers.reader(parent.key).read()))[0]
        return forking.Copied(first, (), None)


def _cancelled(row: Run) -> bool:
    return Run.objects.filter(pk=row.pk, wanted="cancel").exists()


def _adopting(row: Run, run: Runner, proposals: Sequence[Record]) -> Runner:
    """In pieces, so that its page shows how far it is. A cancel does not wait for the rest; a pause does."""
    with closing_if_it_fails(run):
        for start in range(0, len(proposals), PIECE):
            if _cancelled(row):
                return run
            run.adopt(proposals[start : start + PIECE])
        run.workspace.restore(run.state.r3)
    return run


@contextlib.contextmanager
def closing_if_it_fails(run: Runner) -> Iterator[None]:
    """A lease that nobody gives back is renewed for as long as this process lives."""
    try:
        yield
    except BaseException:
        run.close()
        raise
