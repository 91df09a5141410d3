"""Sign-ins, sign-outs and failed ones, and changes of how a person signs in, become events without a team."""

from __future__ import annotations

from typing import Any

from allauth.account import signals as account
from allauth.mfa import signals as mfa
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver

from spakweb.ground.audit.actions import record


@receiver(user_logged_in)
def signed_in(user: Any, **kwargs: Any) -> None:
    """Record a sign-in."""
    record(user, "account.signed_in")


@receiver(user_logged_out)
def signed_out(user: Any, **kwargs: Any) -> None:
    """Record a sign-out."""
    record(user, "account.signed_out")


@receiver(user_login_failed)
def failed(credentials: dict[str, Any], **kwargs: Any) -> None:
    """Record a sign-in that failed, with the name that was given."""
    name = str(credentials.get("username") or credentials.get("email") or "")
    record(None, "account.sign_in_failed", name.replace("\0", "")[:100])


@receiver([account.password_changed, account.password_set, account.password_reset])
def password(user: Any, **kwargs: Any) -> None:
    """Record a changed password."""
    record(user, "account.password_changed")


@receiver(mfa.authenticator_added)
def factor_added(user: Any, authenticator: Any, **kwargs: Any) -> None:
    """Record a second factor that was added."""
    record(user, "account.factor_added", str(authenticator.get_type_display()))


@receiver(mfa.authenticator_removed)
def factor_removed(user: Any, authenticator: Any, **kwargs: Any) -> None:
    """Record a second factor that was removed."""
    record(user, "account.factor_removed", str(authenticator.get_type_display()))
