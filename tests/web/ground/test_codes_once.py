"""A code of an authenticator counts once: not again at the sign-in after the set-up, nor a step later."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth
from django.core.cache import cache
from django.test import Client

pytestmark = pytest.mark.django_db
SECRET = "JBSWY3DPEHPK3PXP"
PASSWORD = "a long secret"


@pytest.fixture(autouse=True)
def at(monkeypatch: pytest.MonkeyPatch) -> None:
    """No code is known yet, and the clock of codes stands still; no other, as a module imported meanwhile
    would keep it."""
    cache.clear()
    now = time.time()
    monkeypatch.setattr(auth, "time", SimpleNamespace(time=lambda: now))


def code_at(step: int) -> str:
    """The code of the step that is so many steps away."""
    return auth.format_hotp_value(auth.hotp_value(SECRET, int(auth.time.time()) // 30 + step))


def signs_in(code: str) -> bool:
    client = Client()
    client.post("/account/login/", {"login": "bob", "password": PASSWORD})
    client.post("/account/2fa/authenticate/", {"code": code})
    return "_auth_user_id" in client.session


@pytest.mark.parametrize("step", [-1, 0, 1], ids=["before", "now", "after"])
def test_a_code_counts_once(cast: Any, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    auth.TOTP.activate(cast["bob"], SECRET)
    code = code_at(step)
    assert signs_in(code)
    monkeypatch.setattr(auth.TOTP, "_mark_code_used", lambda self, code: True)  # as after its 30 seconds
    assert not signs_in(code) and not signs_in(f" {code[:3]}-{code[3:]} ")


def test_the_code_of_the_set_up_signs_nobody_in(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bob = cast.client("bob")
    monkeypatch.setattr(auth, "get_totp_secret", lambda regenerate=False: SECRET)
    bob.post("/account/reauthenticate/", {"password": PASSWORD})
    bob.get("/account/2fa/totp/activate/")
    bob.post("/account/2fa/totp/activate/", {"code": code_at(0)})
    assert Authenticator.objects.filter(user=cast["bob"], type="totp").exists()
    assert not signs_in(code_at(0))
    assert signs_in(code_at(1))
