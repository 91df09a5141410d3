"""Every address of the pages: the least role that is let in, and how it is asked.

`test_access` makes its tests of these tables, and fails when an address is in none of them. Addresses of the
API have a table of their own (tests/api_table.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from spakweb.ground.teams.models import Role


@dataclass(frozen=True)
class Route:
    """How an address is asked and the least role that is let in. `least` None: whoever is signed in."""

    least: Role | None
    method: str = "get"
    given: dict[str, Any] = field(default_factory=dict)
    args: tuple[str, ...] = ("team",)
    body: str = ""
    """What is sent as JSON."""


SPEC = ("team", "spec")
RUN = ("team", "run")
SUITE = ("team", "suite")
SOURCE = ("team", "source")
PATCH = ("team", "spec", "patch")
VERSION = ("team", "spec", "number")
VIEWER, EDITOR, REVIEWER, ADMIN = Role
ASKED = json.dumps({"text": 'task A { step b: tool.run { cmd: "true" } }'})
DRAFT = json.dumps({"text": "task A { }", "base_version": 1})

RULE = {
    "name": "b", "kind": "github", "repository": "a/b", "ref": "main", "audience": "https://spak.example",
    "minutes": "15",
}  # fmt: skip
REVISED = json.dumps({"text": "task A { }", "revision": 1})

TEAM_ROUTES = {
    "spak-team-home": Route(VIEWER),
    "spak-team-members": Route(VIEWER),
    "spak-team-checkpoint": Route(VIEWER),
    "spak-team-keep": Route(ADMIN, "post", {"days": "30"}),
    "spak-member-role": Route(ADMIN, "post", {"role": "viewer"}, ("team", "member")),
    "spak-member-remove": Route(ADMIN, "post", {}, ("team", "member")),
    "spak-team-rules": Route(VIEWER),
    "spak-team-rules-save": Route(ADMIN, "post", {"text": ""}),
    "spak-named-role": Route(ADMIN, "post", {"name": "security"}),
    "spak-named-role-remove": Route(ADMIN, "post", {}, ("team", "role")),
    "spak-invite": Route(ADMIN, "post", {"role": "viewer"}),
    "spak-invite-withdraw": Route(ADMIN, "post", {}, ("team", "invitation")),
    "spak-audit": Route(ADMIN),
    "spak-audit-export": Route(ADMIN),
    "spak-fleet": Route(VIEWER),
    "spak-work": Route(ADMIN),
    "spak-work-retry": Route(ADMIN, "post", {}, ("team", "job")),
    "spak-oidc-list": Route(ADMIN),
    "spak-oidc-new": Route(ADMIN, "post", RULE),
    "spak-oidc-remove": Route(ADMIN, "post", {}, ("team", "rule")),
    "spak-webhook-list": Route(ADMIN),
    "spak-webhook-new": Route(ADMIN, "post", {"url": "https://ci.example/", "event": "failed"}),
    "spak-webhook": Route(ADMIN, args=("team", "webhook")),
    "spak-webhook-do": Route(ADMIN, "post", {"do": "test"}, ("team", "webhook")),
    "spak-source-list": Route(VIEWER),
    "spak-source-new": Route(
        ADMIN, "post", {"name": "b", "url": "https://git.example/b.git", "refs": "main"}
    ),
    "spak-source": Route(VIEWER, args=SOURCE),
    "spak-source-do": Route(ADMIN, "post", {"do": "rotate"}, SOURCE),
    "spak-source-mend": Route(EDITOR, "post", {}, SOURCE),
    "spak-source-code": Route(VIEWER, args=SOURCE),
    "spak-source-code-read": Route(VIEWER, "post", {}, SOURCE),
    "spak-run-code": Route(VIEWER, args=RUN),
    "spak-run-code-read": Route(VIEWER, "post", {}, RUN),
    "spak-folder-do": Route(ADMIN, "post", {"do": "set", "branch": "main"}, SOURCE),
    "spak-problem-list": Route(VIEWER),
    "spak-problem-save": Route(EDITOR, "post", {"name": "problems/b.py", "text": "x = 1"}),
    "spak-problem": Route(VIEWER, args=("team", "problem")),
    "spak-problem-text": Route(VIEWER, args=("team", "problem")),
    "spak-problem-do": Route(EDITOR, "post", {"do": "check"}, ("team", "problem")),
    "spak-schedule-list": Route(VIEWER),
    "spak-schedule-new": Route(
        EDITOR, "post", {"spec": "small", "name": "b", "cron": "0 6 * * *", "zone": "UTC", "missed": "skip"}
    ),
    "spak-schedule-do": Route(EDITOR, "post", {"do": "off"}, ("team", "schedule")),
    "spak-trigger-list": Route(VIEWER),
    "spak-trigger-new": Route(EDITOR, "post", {"spec": "small", "name": "b"}),
    "spak-trigger": Route(VIEWER, args=("team", "trigger")),
    "spak-trigger-do": Route(EDITOR, "post", {"do": "off"}, ("team", "trigger")),
    "spak-spec-list": Route(VIEWER),
    "spak-spec-new": Route(EDITOR, "post", {"name": "another"}),
    "spak-spec-import": Route(EDITOR, "post"),
    "spak-gallery": Route(VIEWER),
    "spak-gallery-copy": Route(EDITOR, "post", {}, ("team", "name")),
    "spak-spec-detail": Route(VIEWER, args=SPEC),
    "spak-spec-history": Route(VIEWER, args=SPEC),
    "spak-spec-compare": Route(VIEWER, args=SPEC),
    "spak-spec-health": Route(VIEWER, args=SPEC),
    "spak-spec-save": Route(EDITOR, "post", {"text": "task A { }", "base_version": "1"}, SPEC),
    "spak-spec-badge": Route(ADMIN, "post", {"who": "link"}, SPEC),
    "spak-spec-follow": Route(VIEWER, "post", {"on": "0"}, SPEC),
    "spak-spec-archive": Route(ADMIN, "post", {}, SPEC),
    "spak-draft-drop": Route(VIEWER, "post", {}, SPEC),
    "spak-version-detail": Route(VIEWER, args=VERSION),
    "spak-version-download": Route(VIEWER, args=VERSION),
    "spak-version-restore": Route(EDITOR, "post", {}, VERSION),
    "spak-version-tag": Route(REVIEWER, "post", {"name": "stable"}, VERSION),
    "spak-tag-remove": Route(REVIEWER, "post", {}, ("team", "spec", "tag")),
    "spak-editor": Route(VIEWER, args=SPEC),
    "spak-editor-ask": Route(VIEWER, "post", {}, ("team", "spec", "what"), ASKED),
    "spak-editor-draft": Route(EDITOR, "post", {}, SPEC, DRAFT),
    "spak-editor-token": Route(VIEWER, args=SPEC),
    "spak-run-events": Route(VIEWER, given={"after": "9"}, args=("team", "key")),
    "spak-team-events": Route(VIEWER),
    "spak-reviews": Route(VIEWER),
    "spak-review-rules": Route(VIEWER),
    "spak-review-rules-save": Route(ADMIN, "post", {"approvals": "1"}),
    "spak-patch-list": Route(VIEWER, args=SPEC),
    "spak-patch-propose": Route(EDITOR, "post", {"text": "task A { }", "base_version": "1"}, SPEC),
    "spak-spec-protect": Route(ADMIN, "post", {"approvals": "1"}, SPEC),
    "spak-patch": Route(VIEWER, args=PATCH),
    "spak-patch-status": Route(VIEWER, args=PATCH),
    "spak-patch-more": Route(VIEWER, args=PATCH),
    "spak-patch-graph": Route(VIEWER, args=PATCH),
    "spak-patch-text": Route(VIEWER, args=PATCH),
    "spak-patch-conflicts": Route(VIEWER, args=PATCH),
    "spak-patch-viewed": Route(VIEWER, "post", {"part": "tasks/a", "digest": "x"}, PATCH),
    "spak-spec-blame": Route(VIEWER, args=SPEC),
    "spak-spec-history-file": Route(VIEWER, args=SPEC),
    "spak-patch-editor": Route(VIEWER, args=PATCH),
    "spak-patch-revise": Route(EDITOR, "post", {}, PATCH, REVISED),
    "spak-patch-do": Route(EDITOR, "post", {"do": "comment", "text": "why"}, PATCH),
    "spak-suite-list": Route(VIEWER),
    "spak-suite-new": Route(EDITOR, "post", {"name": "another"}),
    "spak-suite-bring": Route(EDITOR, "post", {"name": "brought"}),
    "spak-suite": Route(VIEWER, args=SUITE),
    "spak-suite-change": Route(EDITOR, "post", {"name": "Each night"}, SUITE),
    "spak-case-seal": Route(EDITOR, "post", {"case": "c"}, SUITE),
    "spak-case-golden": Route(EDITOR, "post", {"case": "c", "golden": "1"}, SUITE),
    "spak-experiment-begin": Route(EDITOR, "post", {}, SUITE),
    "spak-experiment": Route(VIEWER, args=(*SUITE, "number")),
    "spak-experiment-stop": Route(EDITOR, "post", {}, (*SUITE, "number")),
    "spak-experiment-resume": Route(EDITOR, "post", {}, (*SUITE, "number")),
    "spak-campaign-list": Route(VIEWER),
    "spak-spec-campaigns": Route(VIEWER, args=SPEC),
    "spak-campaign-begin": Route(EDITOR, "post", {}, SPEC),
    "spak-campaign": Route(VIEWER, args=("team", "number")),
    "spak-campaign-ledger": Route(VIEWER, args=("team", "number")),
    "spak-campaign-control": Route(EDITOR, "post", {"do": "pause"}, ("team", "number")),
    "spak-run-keep": Route(EDITOR, "post", {"new": "kept"}, RUN),
    "spak-spec-findings": Route(VIEWER, args=SPEC),
    "spak-run-list": Route(VIEWER),
    "spak-run-compare": Route(VIEWER),
    "spak-run-import": Route(EDITOR, "post"),
    "spak-run-view": Route(EDITOR, "post", {"name": "mine", "query": "mine=1"}),
    "spak-run-bulk": Route(EDITOR, "post", {"do": "cancel", "run": "live-run"}),
    "spak-run": Route(VIEWER, args=RUN),
    "spak-run-head": Route(VIEWER, args=RUN),
    "spak-run-record": Route(VIEWER, args=(*RUN, "seq")),
    "spak-run-prompt": Route(VIEWER, args=(*RUN, "seq")),
    "spak-run-answer": Route(EDITOR, "post", {"of": "x", "text": "word"}, RUN),
    "spak-run-decide": Route(REVIEWER, "post", {"of": "x", "decision": "approve"}, RUN),
    "spak-run-control": Route(EDITOR, "post", {"do": "pause"}, RUN),
    "spak-run-delete": Route(ADMIN, "post", {}, RUN),
    "spak-run-labels": Route(EDITOR, "post", {"labels": "a"}, RUN),
    "spak-run-check": Route(VIEWER, "post", {}, RUN),
    "spak-run-fork": Route(EDITOR, args=RUN),
    "spak-run-mend": Route(EDITOR, "post", {"answer": "1"}, RUN),
    "spak-run-spec": Route(EDITOR, "post", {}, RUN),
    "spak-run-take-back": Route(EDITOR, "post", {"seq": "1"}, RUN),
    "spak-run-fork-go": Route(EDITOR, "post", {"at": "1"}, RUN),
    "spak-run-export": Route(VIEWER, args=RUN),
    "spak-run-log": Route(VIEWER, args=RUN),
    "spak-run-report": Route(VIEWER, args=RUN),
    "spak-run-patch": Route(VIEWER, args=RUN),
    "spak-branch-ask": Route(EDITOR, "post", {"name": "spak/one"}, RUN),
    "spak-branch-decide": Route(REVIEWER, "post", {"decision": "approve"}, (*RUN, "branch")),
    "spak-run-artifact": Route(VIEWER, args=(*RUN, "file")),
    "spak-run-candidate": Route(VIEWER, args=(*RUN, "seq")),
    "spak-run-new": Route(EDITOR, args=SPEC),
    "spak-run-start": Route(EDITOR, "post", {}, SPEC),
    "spak-run-bring": Route(EDITOR, "post", {}, SPEC),
}
API = "spak-api-"
"""Addresses with a table of their own: tests/api_table.py."""
BY_TOKEN = {
    *("spak-run-events", "spak-team-events", "spak-run-artifact"),
    "spak-schema",
    *("spak-run-export", "spak-run-log", "spak-run-report", "spak-run-patch", "spak-run-candidate"),
}
"""What a program may ask with a token."""
LET_IN_AND_TOLD = {
    "spak-run-spec": 409,  # no guarded session
    "spak-run-take-back": 409,  # no guarded session
    "spak-run-mend": 422,  # a run that asked nothing
    "spak-suite-bring": 400,
    "spak-case-seal": 400,
    "spak-run-bring": 400,
    "spak-experiment-begin": 400,
    "spak-campaign-begin": 400,
    "spak-run-keep": 409,
    **dict.fromkeys(("spak-spec-import", "spak-run-import"), 400),
    **dict.fromkeys(("spak-run-answer", "spak-run-decide", "spak-run-delete"), 409),
}
"""There is no file in what is sent, nobody asked what is answered, and the run has not ended."""
OWN_ROUTES = {
    "spak-home": Route(None, args=()),
    "spak-first-away": Route(None, "post", {}, ()),
    "spak-account": Route(None, args=()),
    "spak-single-keys": Route(None, "post", {"on": "1"}, ()),
    "spak-token-new": Route(None, args=()),
    "spak-token-rotate": Route(None, args=("token",)),
    "spak-token-revoke": Route(None, "post", {}, ("token",)),
    "spak-team-new": Route(None, "post", {"name": "Mine"}, ()),
}
OPEN_ROUTES = {
    "spak-badge",
    "spak-badge-public",
    "spak-oidc-exchange",
    "spak-hook-receive",
    "spak-theme",
    "spak-healthz",
    "spak-readyz",
    "spak-metrics",
    "spak-mcp",
    "spak-join",
    "spak-docs",
    "spak-docs-page",
    "spak-docs-search",
    "spak-docs-image",
    "spak-schema",
    "spak-explorer",
}
"""Nobody need sign in for these."""
OPEN_ARGS = {
    "spak-docs-page": ("page",),
    "spak-docs-image": ("image",),
    "spak-join": ("secret",),
    "spak-badge": ("secret",),
    "spak-badge-public": ("team", "spec"),
    "spak-hook-receive": ("key",),
}
JUDGE_THEMSELVES = {"spak-metrics", "spak-mcp"}
"""They judge by themselves who asks (test_metrics.py, test_mcp_specs.py)."""
ALLAUTH = ("account_", "mfa_", "socialaccount_", "openid_connect_")
"""Addresses of the library, which guards them itself; test_allauth_asks_for_a_sign_in looks at them."""
OPEN_ALLAUTH = {
    *("account_login", "account_signup", "account_logout", "account_inactive", "account_reset_password"),
    *("account_reset_password_done", "account_reset_password_from_key", "account_confirm_email"),
    *(
        "account_reset_password_from_key_done",
        "account_email_verification_sent",
        "account_request_login_code",
    ),
    *("account_confirm_login_code", "mfa_authenticate", "mfa_login_webauthn", "mfa_signup_webauthn"),
    *("mfa_trust", "socialaccount_login_cancelled", "socialaccount_login_error", "socialaccount_signup"),
    *("openid_connect_login", "openid_connect_callback"),
}
GIVEN_TO_ALLAUTH = {"uidb36": "1", "key": "x-y", "pk": 1, "provider_id": "oidc"}
