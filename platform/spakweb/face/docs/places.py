"""Which section of the documentation explains a page of the platform: one table, by the name of its address.

Gives addresses below /docs/. A test looks whether every page has one and every section is there.
"""

from __future__ import annotations

from functools import cache

from django.http import HttpRequest

from spakweb.face.docs import shelf

SIGN_IN = "platform#teams-and-roles"
OF_THE_LIBRARY = ("account_", "mfa_", "socialaccount_", "openid_connect_")
"""Pages of accounts, which are about sign-in."""

SECTIONS = {
    "spak-home": "platform",
    "spak-team-home": "platform",
    "spak-team-new": SIGN_IN,
    "spak-team-members": SIGN_IN,
    "spak-join": SIGN_IN,
    "spak-account": SIGN_IN,
    "spak-token-new": "platform#tokens-for-programs",
    "spak-token-rotate": "platform#tokens-for-programs",
    "spak-team-rules": "platform#rules-of-a-team",
    "spak-audit": "platform#audit-log",
    "spak-spec-list": "platform#specs-and-versions",
    "spak-spec-new": "first-spec",
    "spak-gallery": "first-spec",
    "spak-spec-detail": "platform#specs-and-versions",
    "spak-spec-history": "platform#specs-and-versions",
    "spak-spec-compare": "typed-edits",
    "spak-spec-health": "outer-loop#findings",
    "spak-spec-blame": "platform#specs-and-versions",
    "spak-version-detail": "platform#specs-and-versions",
    "spak-problem-list": "measuring#problems",
    "spak-problem": "measuring#problems",
    "spak-editor": "browser-editor",
    "spak-patch-editor": "browser-editor",
    "spak-reviews": "reviews",
    "spak-review-rules": "reviews#rules",
    "spak-patch-list": "reviews",
    "spak-patch": "reviews#look",
    "spak-patch-more": "reviews#look",
    "spak-patch-conflicts": "reviews#merge",
    "spak-suite-list": "evaluate#on-the-platform",
    "spak-suite": "evaluate#on-the-platform",
    "spak-experiment": "evaluate#experiments",
    "spak-campaign-list": "outer-loop#on-the-platform",
    "spak-campaign": "outer-loop#on-the-platform",
    "spak-spec-campaigns": "outer-loop#on-the-platform",
    "spak-run-new": "runs#starting-watching-and-steering-a-run",
    "spak-run-list": "runs#starting-watching-and-steering-a-run",
    "spak-run": "runs#starting-watching-and-steering-a-run",
    "spak-run-record": "refused#in-the-browser",
    "spak-run-fork": "runs#starting-watching-and-steering-a-run",
    "spak-run-compare": "runs#starting-watching-and-steering-a-run",
    "spak-fleet": "runs#operating",
    "spak-work": "runs#work",
    "spak-schedule-list": "runs#schedules",
    "spak-trigger-list": "webhooks#triggers",
    "spak-trigger": "webhooks#triggers",
    "spak-webhook-list": "webhooks",
    "spak-webhook": "webhooks#attempts",
    "spak-source-list": "sources",
    "spak-source": "sources#specs-in-a-folder",
    "spak-source-code": "world#in-the-browser",
    "spak-run-code": "world#in-the-browser",
    "spak-oidc-list": "ci#without-a-secret",
    "spak-explorer": "ci#addresses",
}


def section_of(name: str) -> str:
    """The section for an address of that name; the index where none is named."""
    return SIGN_IN if name.startswith(OF_THE_LIBRARY) else SECTIONS.get(name, shelf.INDEX)


def help_url(request: HttpRequest) -> str:
    """The address of the section for the page that a request asks for."""
    match = getattr(request, "resolver_match", None)
    page, mark, anchor = section_of(str(match.url_name) if match else "").partition("#")
    return f"{shelf.url_of(page)}{mark}{anchor}"


@cache
def section_url(section: str) -> str:
    """The address of a section such as `language#inputs`; that of its page where it has no such section."""
    page, mark, anchor = section.partition("#")
    known = f'id="{anchor}"' in shelf.page(page).html
    return f"{shelf.url_of(page)}{mark if known else ''}{anchor if known else ''}"


@cache
def code_url(code: str) -> str:
    """The address of the entry of an error's code; empty where no page has one."""
    for page in ("platform", "errors", "runs"):
        if f'id="{code}"' in shelf.page(page).html:
            return f"{shelf.url_of(page)}#{code}"
    return ""
