"""What every page has around it: the person's teams, the theme, whether this is the demo."""

from __future__ import annotations

import ipaddress
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.http.request import split_domain_port

import spak
from spakweb.face.docs import places
from spakweb.work.operate import demo

THEMES = ("auto", "light", "dark")


def theme(request: HttpRequest) -> str:
    """The theme that the person chose."""
    wanted = request.COOKIES.get("spak_theme", "")
    return wanted if wanted in THEMES else "auto"


def by_name(request: HttpRequest) -> bool:
    """Whether the page was asked for by a host's name: browsers keep no passkey for an address of numbers."""
    try:
        ipaddress.ip_address(split_domain_port(request.get_host())[0].strip("[]"))
    except DisallowedHost:
        return False
    except ValueError:
        return True
    return False


def shell(request: HttpRequest) -> dict[str, Any]:
    """What every page's frame shows."""
    user = getattr(request, "user", None)
    return {
        "theme": theme(request),
        "by_name": by_name(request),
        "my_teams": user.teams.all() if user is not None and user.is_authenticated else (),
        "demo": settings.DEMO,
        "demo_user": demo.USER if settings.DEMO else "",
        "demo_password": demo.PASSWORD if settings.DEMO else "",
        "open_signup": settings.OPEN_SIGNUP,
        "spak_version": spak.__version__,
        "help_url": places.help_url(request),
    }
