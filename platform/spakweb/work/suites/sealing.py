"""Sealed checks for a case that was kept without any: a case of its own that takes the place of the other.

A case never changes. The new one has the inputs, files, seed, split and end of the old one, a folder as the
command line writes it, and another hash; a worker tries its checks before any run (judging.py), and until
they were found to fail there the old case stays in use. So checks that show nothing change no suite.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from django.db import IntegrityError, transaction

from spak.errors import SpakError, UserError
from spak.evolve.suites import Case as Kept
from spak.evolve.suites import Check, Right
from spak.evolve.suites.model import FILE, HISTORY, SEALED, WORKSPACE, read_case
from spak.files.scratch import Scratch
from spak.workspace.unpack import look, unpack
from spakweb.ground import access, unsafe_text
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.store.ledger import packs, uploads
from spakweb.store.suites.models import Case, Suite
from spakweb.work.suites.case_runs import require_vetted

MOST_CHECKS = 20


def seal(
    user: Any,
    case: Case,
    checks: Sequence[tuple[str, str]],
    reason: str = "",
    archive: BinaryIO | None = None,
    size: int = 0,
) -> Case:
    """The case with sealed checks, each a command and what it has to print; a zip of the files that only they
    see; `reason` is why they may pass before a run.

    Raises: Refused `web.case`, `upload.*`, `suite.case`.
    """
    access.require(user, "suite.edit", case.suite)
    unsafe_text.require_no_nul([list(pair) for pair in checks], reason)
    if case.checked or not case.suite.current.filter(pk=case.pk).exists():
        why = f"Case {case.name} has checks already, or another one has taken its place."
        raise Refused("web.case", why, "Choose a case without checks.", 409)
    right = Right(case.state, tuple(code for code in case.reason.split(", ") if code))
    right = replace(right, sealed=_checks(checks), passes_before=reason.strip())
    with Scratch("case") as held:
        folder = held / "case"
        folder.mkdir()
        try:
            _fill(folder, case, archive, size)
            made = Kept(case.name, folder, dict(case.inputs), case.seed, right)
            (folder / FILE).write_bytes(orjson.dumps(made.to_json()))
            made = read_case(folder)
        except UserError as error:
            raise Refused(error.code, error.message, error.hint) from error
        except SpakError as error:
            raise Refused("web.case", str(error), "Keep the run once more.") from error
        with transaction.atomic():
            new = _row(user, case, made)
            record(user, "suite.sealed", new.name, case.suite.team, after=made.hash, suite=case.suite.slug)
            packs.put(folder)
    return new


def checks_of(user: Any, team: Team, name: str) -> str:
    """The key of the case SUITE/CASE, whose sealed checks judge another run.

    Raises: Http404; Refused `web.run_sealed`, `web.case_checks`.
    """
    suite, _, case = name.partition("/")
    of: Suite = access.find(user, "suite.view", Suite.objects.filter(team=team), slug=suite)
    found = of.current.filter(name=case).select_related("vetting").first()
    if found is None or not found.pack:
        raise _no_checks(name)
    require_vetted([found])
    with Scratch("case") as held:
        folder = held / "case"
        folder.mkdir()
        packs.fill(found.pack, folder)
        if not read_case(folder).right.sealed:
            raise _no_checks(name)
    return found.pack


def _no_checks(name: str) -> Refused:
    hint = "SUITE/CASE, of a case that was given sealed checks."
    return Refused("web.run_sealed", f"{name[:80]!r} names no case with sealed checks.", hint, 422)


def _fill(folder: Path, case: Case, archive: BinaryIO | None, size: int) -> None:
    limits = replace(uploads.limits(), links=False)  # what a case reads is in its own folder
    if size > limits.size_bytes:
        raise Refused("web.case", "The zip is larger than files of a run may be.", "Choose less.", 413)
    if case.files is not None:
        (folder / WORKSPACE).mkdir()
        with uploads.opened(case.files) as file:
            unpack(file, folder / WORKSPACE, limits, case.files.folder)
    if case.history:
        (folder / HISTORY).write_bytes(packs.content(case.history, HISTORY))
    if archive is not None:
        (folder / SEALED).mkdir()
        unpack(archive, folder / SEALED, limits, look(archive, limits, strip=True).folder)


def _row(user: Any, case: Case, made: Kept) -> Case:
    tries = case.successors.count()
    name = f"{case.name[:60]}-sealed" + (f"-{tries + 1}" if tries else "")
    try:
        with transaction.atomic():
            return Case.objects.create(
                suite=case.suite, name=name, content_hash=made.hash, split=case.split, inputs=case.inputs,
                files=case.files, state=case.state, reason=case.reason, origin=case.origin, seed=case.seed,
                history=packs.key_of(made.folder) if case.history else "",
                pack=packs.key_of(made.folder), checked=True, golden=case.is_golden, replaces=case,
                made_by=user,
            )  # fmt: skip
    except IntegrityError as error:
        why = "The suite has a case of that name, or with these very checks."
        raise Refused("web.case", why, "Change the checks.", 409) from error


def _checks(given: Sequence[tuple[str, str]]) -> tuple[Check, ...]:
    if not 0 < len(given) <= MOST_CHECKS:
        raise Refused("web.case", f"Name 1 to {MOST_CHECKS} commands.", "Each is a check.")
    return tuple(Check(_words(command), output=output) for command, output in given)


def _words(command: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise Refused("web.case", f"{command[:80]}: {error}.", "Fix the quotes.") from error
    if not words:
        raise Refused("web.case", "A check has no command.", "Name a program and its arguments.")
    return words
