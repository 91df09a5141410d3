"""A suite of the command line, brought as a zip of its folder: every case of it, or nothing.

A case keeps its name, its hash, what counts as right with sealed checks, its recording and its seed. The
split of a case that the folder's own ledger has drawn stays: one that was read for training is none to judge
by.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any, BinaryIO

from django.db import IntegrityError, transaction

from spak.errors import SpakError, UserError
from spak.evolve.suites import Case as Kept
from spak.evolve.suites import Suite as Folder
from spak.evolve.suites.book import draw
from spak.files.scratch import Scratch
from spak.workspace.unpack import look, unpack
from spakweb.ground import access
from spakweb.ground.audit.actions import record
from spakweb.ground.errors import Refused
from spakweb.ground.teams.models import Team
from spakweb.store.ledger import packs, uploads
from spakweb.store.suites.models import Case, Suite
from spakweb.work.suites.actions import make

MOST_CASES = 200
GOLDEN = "golden"
UNLISTED = ("suite.unlisted",)
"""Problems of a folder that are none here: its ledger need not know every case."""


def bring(user: Any, team: Team, name: str, archive: BinaryIO, size: int) -> Suite:
    """A new suite with the cases of a zip. Raises: Refused `web.suite_name`, `web.suite_zip`, `upload.*`,
    and the code of what is wrong with the suite (`suite.*`)."""
    access.require(user, "suite.edit", team)
    limits = replace(uploads.limits(), links=False)  # what a case reads is in its own folder
    if size > limits.size_bytes:
        raise Refused("web.suite_zip", "The zip is larger than files of a run may be.", "Bring less.", 413)
    with Scratch("suite") as folder:
        try:
            unpack(archive, folder, limits, look(archive, limits, strip=True).folder)
            found = Folder.open(folder)
        except UserError as error:
            raise Refused(error.code, error.message, error.hint) from error
        except SpakError as error:  # the suite's ledger is damaged
            raise Refused("web.suite_zip", str(error), "Upload the whole folder of the suite.") from error
        problems = [item for item in found.problems() if item.code not in UNLISTED]
        if problems:
            first = problems[0]
            raise Refused(first.code, f"{first.case or 'The suite'}: {first.message}.", "spak suite check")
        if len(found.cases) > MOST_CASES:
            raise Refused("web.suite_zip", f"{len(found.cases)} cases: at most {MOST_CASES}.", "Bring fewer.")
        with transaction.atomic():
            suite = make(user, team, name)
            if found.book.seed:
                suite.seed = found.book.seed
                suite.save(update_fields=["seed"])
            for case in found.cases:
                _kept(user, suite, case, found.split(case) or draw(suite.seed, case.hash))
            record(user, "suite.brought", suite.slug, team, after=found.hash, cases=len(found.cases))
            for case in found.cases:  # last, so that a suite that is refused leaves no file
                packs.put(case.folder)
    return suite


def _kept(user: Any, suite: Suite, case: Kept, split: str) -> Case:
    right, files = case.right, None
    if case.workspace is not None:
        data = packs.zipped(case.workspace)
        files, _ = uploads.keep(user, suite.team, f"{suite.slug} {case.name}", io.BytesIO(data), len(data))
    try:
        return Case.objects.create(
            suite=suite, name=case.name[:80], content_hash=case.hash, split=split, inputs=dict(case.inputs),
            files=files, state=right.state, reason=", ".join(right.codes)[:200], made_by=user,
            pack=packs.key_of(case.folder), seed=case.seed, recorded=case.recording is not None, checked=True,
            golden=GOLDEN in case.tags or case.recording is not None,
            history="" if case.history is None else packs.key_of(case.folder),
        )  # fmt: skip
    except IntegrityError as error:
        raise Refused(
            "web.suite_zip", f"{case.name}: two cases of the zip are alike.", "Rename one."
        ) from error
