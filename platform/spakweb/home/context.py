"""What every page has around it: the person's teams, the theme, whether this is the demo."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

import spak
from spakweb.home import demo

THEMES = ("auto", "light", "dark")


def theme(request: HttpRequest) -> str:
    wanted = request.COOKIES.get("spak_theme", "")
    return wanted if wanted in THEMES else "auto"


def shell(request: HttpRequest) -> dict[str, Any]:
    user = getattr(request, "user", None)
    return {
        "theme": theme(request),
        "my_teams": user.teams.all() if user is not None and user.is_authenticated else (),
        "demo": settings.DEMO,
        "demo_user": demo.USER if settings.DEMO else "",
        "demo_password": demo.PASSWORD if settings.DEMO else "",
        "open_signup": settings.OPEN_SIGNUP,
        "spak_version": spak.__version__,
    }
