"""What allauth asks of us: who may make an account (whoever was invited; everyone if the setting says so),
where a sign-in leads, and what a locked-out one is answered: 429 with
Retry-After, which clients and logs understand.
"""

from __future__ import annotations

import math
import time
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.core.internal import ratelimit
from allauth.core.ratelimit import respond_429
from django.conf import settings
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.urls import reverse

from spakweb.work.teams.actions import invitation

APP, FAILED, FAILED_ANYWHERE = "allauth.account", "login_failed", "login_failed_anywhere"
"""Under which wrong passwords are counted: of a name from one address, and of a name from all of them."""
SESSION_KEY = "spak_invitation"
"""Where the secret of the invitation that a person followed is kept until they are signed in."""


class AccountAdapter(DefaultAccountAdapter):
    """What allauth asks of this site."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Whether an account may be made: sign-up is open, or the person was invited."""
        return settings.OPEN_SIGNUP or invitation(request.session.get(SESSION_KEY, "")) is not None

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Answer too many attempts with 429."""
        try:
            super().pre_authenticate(request, **credentials)
            name = super()._get_login_attempts_cache_key(request, **credentials)
            anywhere = ratelimit.consume(request, app=APP, action=FAILED_ANYWHERE, key=name)
            if anywhere is None:
                raise self.validation_error("too_many_login_attempts")
            self._login_failed_rl_usage.usage += anywhere.usage  # taken back by a right password
        except ValidationError as error:
            response = respond_429(request)
            response["Retry-After"] = str(self._wait_s(request, credentials))
            raise ImmediateHttpResponse(response) from error

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Of a name from one address: wrong passwords from another one do not lock the person out."""
        name = super()._get_login_attempts_cache_key(request, **credentials)
        return f"{name}:{ratelimit.get_ip(request)}"

    def _delete_login_attempts_cached_email(self, request: HttpRequest, **credentials: Any) -> None:
        """A new password ends all waiting."""
        super()._delete_login_attempts_cached_email(request, **credentials)
        name = super()._get_login_attempts_cache_key(request, **credentials)
        ratelimit.clear(request, app=APP, action=FAILED_ANYWHERE, key=name)

    def _wait_s(self, request: HttpRequest, credentials: dict[str, Any]) -> int:
        """Seconds until a try is heard again: the time left of each limit that is used up."""
        keys = {
            FAILED: self._get_login_attempts_cache_key(request, **credentials),
            FAILED_ANYWHERE: super()._get_login_attempts_cache_key(request, **credentials),
        }
        now, wait = time.time(), 1.0
        for action, key in keys.items():
            for rate in ratelimit.get_rates(app=APP, action=action):
                name = ratelimit.get_cache_key(request, app=APP, action=action, rate=rate, key=key)
                counted = [at for at in cache.get(name, []) if at > now - rate.duration]
                if len(counted) >= rate.amount:  # the newest first
                    wait = max(wait, counted[rate.amount - 1] + rate.duration - now)
        return math.ceil(wait)

    def get_login_redirect_url(self, request: HttpRequest, *args: Any, **kwargs: Any) -> str:
        """The team that the person was invited to, else the usual page."""
        return _join(request) or super().get_login_redirect_url(request, *args, **kwargs)

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        """The team that the person was invited to, else the usual page."""
        return _join(request) or super().get_signup_redirect_url(request)


def _join(request: HttpRequest) -> str:
    secret = request.session.get(SESSION_KEY)
    return reverse("spak-join", args=[secret]) if secret else ""
