"""What allauth asks of us: who may make an account (whoever was invited; everyone if the setting says so),
where a sign-in leads, and what a locked-out one is answered: 429, which clients and logs understand.
"""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.core.ratelimit import respond_429
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.urls import reverse

from spakweb.teams.actions import invitation

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
        except ValidationError as error:
            raise ImmediateHttpResponse(respond_429(request)) from error

    def get_login_redirect_url(self, request: HttpRequest, *args: Any, **kwargs: Any) -> str:
        """The team that the person was invited to, else the usual page."""
        return _join(request) or super().get_login_redirect_url(request, *args, **kwargs)

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        """The team that the person was invited to, else the usual page."""
        return _join(request) or super().get_signup_redirect_url(request)


def _join(request: HttpRequest) -> str:
    secret = request.session.get(SESSION_KEY)
    return reverse("spak-join", args=[secret]) if secret else ""
