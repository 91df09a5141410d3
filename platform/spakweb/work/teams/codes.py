"""The forms that take a code of an authenticator: each code is taken once, for as long as it could be valid.

allauth forgets a used code after one step of 30 seconds, though codes of the steps before and after are taken
too, and takes the code of the set-up once more. The mark is in the cache that all web processes share. What a
code is, and how many may be tried, is decided by allauth.
"""

from __future__ import annotations

from typing import Any

from allauth.core.internal.cryptokit import normalize_user_code
from allauth.mfa import app_settings
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.totp.forms import ActivateTOTPForm
from django.core.cache import cache


def is_first(user: Any, code: str) -> bool:
    """Whether the person has not used the code while it could be valid; from now on they have."""
    valid_s = app_settings.TOTP_PERIOD * (2 * app_settings.TOTP_TOLERANCE + 1)
    return bool(cache.add(f"code-used:{user.pk}:{normalize_user_code(code)}", 1, timeout=valid_s))


class _Once:
    user: Any

    def clean_code(self) -> str:
        """The code. Raises: ValidationError, also where it was used before."""
        code: str = super().clean_code()  # type: ignore[misc]
        if not is_first(self.user, code):
            raise get_adapter().validation_error("incorrect_code")
        return code


class Authenticate(_Once, AuthenticateForm):
    """Signing in."""


class Reauthenticate(_Once, ReauthenticateForm):
    """Saying who one is once more."""


class Activate(_Once, ActivateTOTPForm):
    """Setting an authenticator up."""
