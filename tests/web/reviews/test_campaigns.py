"""A campaign's candidates become patches with their evidence, once, and only from a ledger that holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from campaign_kit import BASE, ledger
from run_rows_kit import begun
from spak.evolve.campaigns import Campaign
from spakweb.ground.errors import Refused
from spakweb.store.reviews.models import Check, Patch
from spakweb.store.specs.models import Spec
from spakweb.work.reviews import actions, campaigns
from spakweb.work.specs.actions import create_spec

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def spec(cast: Any) -> Spec:
    return create_spec(cast["alice"], cast.team, "looped", BASE)


def test_a_fit_candidate_arrives_with_its_evidence_once(cast: Any, spec: Spec, tmp_path: Path) -> None:
    bob, where = cast.client("bob"), reverse("spak-patch-propose", args=[cast.team.slug, "looped"])
    data = ledger(tmp_path, f"Look twice {HOSTILE}")

    def send() -> Any:
        return bob.post(where, {"kind": "campaign", "file": SimpleUploadedFile("trace.jsonl", data)})

    answer = send()
    assert answer.status_code == 302, answer.content.decode()
    patch = Patch.objects.get()
    assert answer["Location"] == reverse("spak-patch", args=[cast.team.slug, "looped", 1])
    assert "Look twice." in patch.latest.text and patch.proposer.startswith("campaign suite ")
    row = patch.latest.checks.get(name="campaign")
    assert row.state == Check.State.PASSED and row.result["pairs"][-1]["evidence"] >= row.result["needed"]
    body = bob.get(answer["Location"]).content.decode()
    assert "Fit for review" in body and '<svg class="curve"' in body and "r1, records 3, 4" in body
    assert HOSTILE not in body and "brought by bob" in body
    begun(cast.team, spec.head, "r1")
    body = bob.get(answer["Location"]).content.decode()
    record = reverse("spak-run-record", args=[cast.team.slug, "r1", 3])
    assert f'<a href="{record}">3</a>, <a href=' in body, "findings lead to their records"
    assert "No candidate is new" in bob.get(send()["Location"]).content.decode()
    assert Patch.objects.count() == 1
    actions.revise(cast["bob"], patch, 1, patch.latest.text + "// more\n")
    assert "Of revision 1" in bob.get(answer["Location"]).content.decode()
    version = _merged(cast, patch)
    assert version.provenance["campaign"] == patch.campaign


def test_pairs_are_shown_by_case_and_round() -> None:
    def pair(case: str, k: int, word: str, golden: bool = False) -> dict[str, Any]:
        return {"case": case, "k": k, "word": word, "golden": golden, "evidence": 1.0}

    found = [
        pair("a", 1, "won", golden=True),
        pair("b", 1, "lost"),
        pair("c", 2, "won"),
        pair("b", 2, "equal"),
    ]
    assert campaigns.matrix({"pairs": found}) == {
        "rounds": [1, 2],
        "rows": [
            {"case": "a (golden)", "cells": ["won", ""], "won": 1, "lost": 0},
            {"case": "b", "cells": ["lost", "equal"], "won": 0, "lost": 1},
            {"case": "c", "cells": ["", "won"], "won": 1, "lost": 0},
        ],
    }
    assert campaigns.matrix({}) == {"rounds": [], "rows": []}


def _merged(cast: Any, patch: Patch) -> Any:
    actions.judge(cast["rita"], patch, 2, True)
    actions.judge(cast["alice"], patch, 2, True)
    return actions.merge(cast["bob"], patch, 2)


def test_what_is_not_shown_is_not_proposed(cast: Any, spec: Spec, tmp_path: Path) -> None:
    data = ledger(tmp_path, better=0.4)
    assert Campaign.read(tmp_path, "c").tested[0].verdict == "not_shown"
    assert campaigns.bring(cast["bob"], spec, data) == []


def test_a_ledger_that_does_not_hold_is_refused(cast: Any, spec: Spec, tmp_path: Path) -> None:
    data = ledger(tmp_path / "one")
    other = ledger(tmp_path / "two", base=BASE.replace("One.", "Two."))
    for wrong, code in (
        (b"", "web.campaign"),
        (b"\xff\xfe", "web.campaign"),
        (b"{}\n" * 3, "web.campaign"),
        (data.replace(b"Look twice.", b"Look often."), "web.campaign"),
        (b"x" * (campaigns.BYTES + 1), "web.campaign"),
        (other, "web.campaign_base"),
    ):
        with pytest.raises(Refused) as why:
            campaigns.bring(cast["bob"], spec, wrong)
        assert why.value.code == code, wrong[:20]
    assert not Patch.objects.exists()
