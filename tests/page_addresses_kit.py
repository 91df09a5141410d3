"""Every page of the platform by the name of its address, and paths that show it to alice of the demo team.

`test_access` fails when an address answers with a whole page and is not named here; `test_shell_pages` opens
each path in a browser, where axe looks at it. `MADE` makes what the paths name, and prints what `{run}` and
`{join}` stand for. Pages of a run in each of its states: `test_run_stories`, `test_live_axe`.
"""

from __future__ import annotations

TEAM = "/t/demo-team"
SPEC = f"{TEAM}/specs/writes"
ACCOUNT = "/account"

NOBODYS: dict[str, tuple[str, ...]] = {
    "account_login": (f"{ACCOUNT}/login/",),
    "account_signup": (f"{ACCOUNT}/signup/",),
    "account_inactive": (f"{ACCOUNT}/inactive/",),
    "account_reset_password": (f"{ACCOUNT}/password/reset/",),
    "account_reset_password_done": (f"{ACCOUNT}/password/reset/done/",),
    "account_reset_password_from_key": (f"{ACCOUNT}/password/reset/key/1-x-y/",),
    "account_reset_password_from_key_done": (f"{ACCOUNT}/password/reset/key/done/",),
    "account_confirm_email": (f"{ACCOUNT}/confirm-email/x-y/",),
    "account_email_verification_sent": (f"{ACCOUNT}/confirm-email/",),
    "socialaccount_login_cancelled": (f"{ACCOUNT}/3rdparty/login/cancelled/",),
    "spak-join": ("{join}",),
    "spak-docs": ("/docs/",),
    "spak-explorer": ("/api/",),
    "spak-docs-page": ("/docs/first-spec/", "/docs/runs/", "/docs/errors/", "/docs/adr/README/"),
    "spak-docs-search": ("/docs/search/?q=sandbox", "/docs/search/?q=nothing-like-it"),
}
"""Seen by who is not signed in."""

RECENT: dict[str, tuple[str, ...]] = {
    "spak-token-new": ("/me/tokens/new/",),
    "spak-token-rotate": ("/me/tokens/1/rotate/",),
    "mfa_activate_totp": (f"{ACCOUNT}/2fa/totp/activate/",),
}
"""Seen within minutes of a sign-in; they ask for the password later."""

PAGES: dict[str, tuple[str, ...]] = {
    **RECENT,
    **NOBODYS,
    "account_logout": (f"{ACCOUNT}/logout/",),
    "account_reauthenticate": (f"{ACCOUNT}/reauthenticate/",),
    "account_change_password": (f"{ACCOUNT}/password/change/",),
    "account_email": (f"{ACCOUNT}/email/",),
    "mfa_index": (f"{ACCOUNT}/2fa/",),
    "mfa_list_webauthn": (f"{ACCOUNT}/2fa/webauthn/",),
    "socialaccount_connections": (f"{ACCOUNT}/3rdparty/",),
    "spak-account": ("/me/",),
    "spak-team-new": ("/teams/new/",),
    "spak-team-home": (f"{TEAM}/",),
    "spak-team-members": (f"{TEAM}/members/",),
    "spak-team-rules": (f"{TEAM}/rules/",),
    "spak-audit": (f"{TEAM}/audit/",),
    "spak-fleet": (f"{TEAM}/fleet/",),
    "spak-work": (f"{TEAM}/work/",),
    "spak-oidc-list": (f"{TEAM}/ci/",),
    "spak-webhook-list": (f"{TEAM}/webhooks/",),
    "spak-webhook": (f"{TEAM}/webhooks/1/",),
    "spak-source-list": (f"{TEAM}/sources/",),
    "spak-problem-list": (f"{TEAM}/problems/",),
    "spak-problem": (f"{TEAM}/problems/1/", f"{TEAM}/problems/2/"),
    "spak-schedule-list": (f"{TEAM}/schedules/",),
    "spak-trigger-list": (f"{TEAM}/triggers/",),
    "spak-trigger": (f"{TEAM}/triggers/1/",),
    "spak-source": (f"{TEAM}/sources/s/shop/",),
    "spak-source-code": (
        f"{TEAM}/sources/s/shop/code/", f"{TEAM}/sources/s/shop/code/?q=cart.py%23Cart.total",
    ),
    "spak-spec-list": (
        f"{TEAM}/specs/", f"{TEAM}/specs/?q=nothing-like-it", f"{TEAM}/specs/?archived=1",
    ),
    "spak-spec-new": (f"{TEAM}/specs/new/",),
    "spak-gallery": (f"{TEAM}/specs/gallery/",),
    "spak-spec-detail": (f"{TEAM}/specs/first-draft/", f"{TEAM}/specs/attention-tuner/", f"{SPEC}/"),
    "spak-spec-history": (f"{SPEC}/history/",),
    "spak-spec-compare": (f"{SPEC}/compare/", f"{TEAM}/specs/hello/compare/"),
    "spak-spec-health": (f"{SPEC}/health/", f"{TEAM}/specs/hello/health/"),
    "spak-spec-blame": (f"{SPEC}/blame/",),
    "spak-spec-campaigns": (f"{SPEC}/campaigns/", f"{TEAM}/specs/hello/campaigns/"),
    "spak-version-detail": (f"{SPEC}/v/1/",),
    "spak-editor": (f"{SPEC}/edit/",),
    "spak-reviews": (f"{TEAM}/reviews/",),
    "spak-review-rules": (f"{TEAM}/reviews/rules/",),
    "spak-patch-list": (f"{SPEC}/patches/", f"{TEAM}/specs/hello/patches/"),
    "spak-patch": (f"{SPEC}/patches/1/",),
    "spak-patch-more": (f"{SPEC}/patches/1/more/",),
    "spak-patch-editor": (f"{SPEC}/patches/1/edit/",),
    "spak-patch-conflicts": (f"{SPEC}/patches/1/conflicts/",),
    "spak-suite-list": (f"{TEAM}/suites/",),
    "spak-suite": (f"{TEAM}/suites/nightly/",),
    "spak-experiment": (f"{TEAM}/suites/nightly/1/",),
    "spak-campaign-list": (f"{TEAM}/campaigns/",),
    "spak-campaign": (f"{TEAM}/campaigns/1/",),
    "spak-run-list": (f"{TEAM}/runs/",),
    "spak-run-compare": (f"{TEAM}/runs/compare/?one={{run}}&two={{run}}",),
    "spak-run": (f"{TEAM}/runs/{{run}}/",),
    "spak-run-code": (f"{TEAM}/runs/{{run}}/code/",),
    "spak-run-record": (f"{TEAM}/runs/{{run}}/r/1/",),
    "spak-run-fork": (f"{TEAM}/runs/{{run}}/fork/",),
    "spak-run-new": (f"{SPEC}/run/",),
}  # fmt: skip

MADE = """
import sys
import tempfile
from pathlib import Path
sys.path.insert(0, "tests")
import platform_campaigns as kit
from spakweb.work.folders import actions as folders

from spakweb.work.hooks import actions as hooks
from spakweb.work.incoming import actions as incoming
from spakweb.work.jobs import queue as jobs
from spakweb.work.oidc import actions as oidc
from spakweb.work.reviews.actions import propose
from spakweb.store.runs.models import Run
from spakweb.work.schedules import actions as schedules
from spakweb.store.sources import code_index
from spakweb.work.sources import actions as sources
from spakweb.work.sources import reading
from spakweb.work.triggers import actions as triggers
from spakweb.work.specs import problem_files
from spakweb.work.specs.actions import save_version
from spakweb.store.specs.models import ProblemFile
from spakweb.work.suites import actions as suites
from spakweb.work.teams import actions as teams
from spakweb.work.teams import named_roles, tokens
from spakweb.ground.teams.models import Team, User
from spakweb.work.worker import queue
queue.send = lambda key, queue="default": None
alice, team = User.objects.get(username="alice"), Team.objects.get(slug="demo-team")
spec, suite = kit.ground(alice, team)
save_version(alice, spec, kit.TWICE.replace('content: "good"', 'content: "bad"'), 1, "Worse")
spec.refresh_from_db()
suites.begin(alice, suite, list(spec.versions.all()), 1, ["gate"])
kit.begun(alice, spec, suite)
hooks.add(alice, team, "https://ci.example.org/hooks", ["failed"])
shop = sources.add(
    alice, team, "shop", "git@git.example.org:shop.git", ["main"], host_keys="ssh-ed25519 AAAAC3Nza"
)
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "cart.py").write_text("class Cart:\\n    def total(self):\\n        return 3\\n")
    Path(folder, "mail.py").write_text(
        "from cart import Cart\\ndef a(cart: Cart):\\n    cart.total()\\ndef b(x):\\n    x.total()\\n"
    )
    shop.code = code_index.keep(lambda into: reading.index(Path(folder), into))
shop.save()
jobs.send = lambda kind, key, queue="default": None
for name in ("problems/scale.py", "problems/waits.py"):
    problem_files.save(alice, team, name, "prototype = 'void scale(long n, const float *x, float *y)'")
finding = {"code": "problem.invalid", "severity": "error", "message": "sizes is missing", "hint": "add it"}
ProblemFile.objects.filter(name="problems/scale.py").update(state="bad", found=[finding])
folders.set_up(alice, shop, "main", "specs", "commit")
incoming.open_for(alice, shop)
triggers.add(alice, team.specs.first(), "deploy", event="push", ref="main")
schedules.add(alice, team.specs.first(), "nightly", "0 3 * * *", "Europe/Berlin")
propose(User.objects.get(username="bob"), spec, kit.TWICE.replace('"good"', '"better"'), 2, "Better")
oidc.add(alice, team, oidc.Wanted("release", "github", "acme/shop", "main", "https://spak.example"))
tokens.make(alice, "nightly", 30, team, ["start"], [spec.slug])
named_roles.keep(alice, team, "security", [team.memberships.get(user=alice).pk])
run = Run.objects.filter(version__spec=spec, state="succeeded").first()
print(run.key, "/join/" + teams.invite(alice, team, "viewer")[1] + "/")
"""
