"""Approvals of people on the platform: it signs for each with a key of that person, or with its own.

A person's key is derived from the platform's, so that nothing more is kept. Those who may approve when a run
begins are in its genesis by their names, for laws that ask who signs; who joins the team later signs with the
platform's key. The person is named beside the answer in any case.

The key is made on first use and stays in the data folder with mode 0600 (docs/platform.md says how to keep
it), or, where hosts have folders of their own, in the database: a run that one of them begins is approved on
another. Its public half is in the genesis of every run that the platform begins. Runs that came from
elsewhere do not know it and refuse what it signs.
"""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings

from spak.errors import RunError
from spak.kernel.state import Effect
from spak.policy import approval
from spakweb.ground.rights import ACTIONS, RANK
from spakweb.ground.teams.models import Team, User
from spakweb.store.runs.models import StoredFile

FILE = "approval_key"
PLATFORM = "platform"
"""The name of the platform's key, by which nobody else is listed."""
MOST = 100
"""People whose keys a run knows."""


def private_key() -> bytes:
    """The platform's key, 32 bytes; two processes that make it at once agree on one."""
    if settings.STORAGE != "database":
        return _kept(Path(settings.DATA_DIR) / FILE)
    row = StoredFile.objects.filter(name=FILE).first()
    if row is None:  # that of this host, if it had one before it was one of several
        mine = _kept(Path(settings.DATA_DIR) / FILE)
        row, _ = StoredFile.objects.get_or_create(name=FILE, defaults={"data": mine})
    return bytes(row.data)


def _kept(file: Path) -> bytes:
    try:
        found = file.read_bytes()
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        aside = file.with_name(f".{FILE}.{os.urandom(4).hex()}")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as made:
            made.write(Ed25519PrivateKey.generate().private_bytes_raw())
            made.flush()
            os.fsync(made.fileno())
        try:
            os.link(aside, file)
        except FileExistsError:
            pass
        finally:
            aside.unlink()
        found = file.read_bytes()
    if len(found) != 32:
        raise RunError("web.approval_key", f"{FILE} among the data is damaged", "restore it from a backup")
    return found


def may_approve(team: Team) -> list[User]:
    """The people of a team who may approve what its runs ask for."""
    least = RANK[ACTIONS["run.approve"]]
    roles = [role for role, rank in RANK.items() if rank >= least]
    found = User.objects.filter(memberships__team=team, memberships__role__in=roles)
    return list(found.exclude(username=PLATFORM).order_by("pk")[:MOST])


def approvers(people: Iterable[User] = ()) -> list[dict[str, Any]]:
    """The approvers of a new run, as genesis has them: the platform, and these people."""
    keys = {PLATFORM: private_key(), **{one.get_username(): _key_of(one) for one in people}}
    publics = {name: _public(key) for name, key in keys.items()}
    return [
        {"id": approval.key_id(text), "name": name, "public": text, "roles": [approval.APPROVER]}
        for name, text in publics.items()
    ]


def _key_of(person: User) -> bytes:
    return hmac.digest(private_key(), f"approver {person.pk}".encode(), "sha256")


@lru_cache(maxsize=1024)
def _public(private: bytes) -> str:
    return approval.encoded(Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw())


def signed(
    run: str, effect: Effect, decision: str, expires_s: int, by: User, keys: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The body of an approval (or a denial) of the action that the run waits for; `keys` are the run's."""
    if effect.act != "approve":
        raise RunError(
            "run.no_approval", "the run waits for no approval", "reload the page: the run has continued"
        )
    own = _key_of(by)
    return approval.make(
        own if any(key.get("public") == _public(own) for key in keys) else private_key(),
        action=approval.action_hash(effect.name, effect.args["args"]),
        of=effect.id,
        run=run,
        step=f"{effect.task}/{effect.step}",
        expires=time.time_ns() // 1_000_000 + expires_s * 1000,
        decision=approval.APPROVE if decision == "approve" else approval.DENY,
    )
