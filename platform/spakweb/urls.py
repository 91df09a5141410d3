"""Every address of the platform. What is a team's has the team in its address: a link means one thing."""

from __future__ import annotations

from django.urls import include, path

from spakweb.face.docs import schema
from spakweb.face.docs import views as docs
from spakweb.face.home import metrics
from spakweb.face.home import views as home
from spakweb.face.mcp import views as mcp
from spakweb.face.runs import badges
from spakweb.face.streams import events

urlpatterns = [
    path("", home.home, name="spak-home"),
    path("theme/", home.theme, name="spak-theme"),
    path("first/", home.put_away, name="spak-first-away"),
    path("metrics", metrics.metrics, name="spak-metrics"),
    path("badge/<str:secret>.svg", badges.by_link, name="spak-badge"),
    path("badge/<slug:team>/<slug:spec>.svg", badges.public, name="spak-badge-public"),
    path("healthz", home.healthz, name="spak-healthz"),
    path("readyz", home.readyz, name="spak-readyz"),
    path("account/", include("allauth.urls")),
    path("", include("spakweb.face.teams.urls")),
    path("t/<slug:team>/", home.team_home, name="spak-team-home"),
    path("t/<slug:team>/specs/", include("spakweb.face.specs.urls")),
    path("t/<slug:team>/specs/<slug:spec>/", include("spakweb.face.editor.urls")),
    path("t/<slug:team>/", include("spakweb.face.reviews.urls")),
    path("t/<slug:team>/", include("spakweb.face.suites.urls")),
    path("t/<slug:team>/", include("spakweb.face.campaigns.urls")),
    path("t/<slug:team>/", include("spakweb.face.runs.urls")),
    path("t/<slug:team>/runs/events", events.team_events, name="spak-team-events"),
    path("t/<slug:team>/runs/<str:key>/events", events.run_events, name="spak-run-events"),
    path("t/<slug:team>/webhooks/", include("spakweb.face.hooks.urls")),
    path("t/<slug:team>/runs/<str:run>/", include("spakweb.face.sources.run_urls")),
    path("t/<slug:team>/schedules/", include("spakweb.face.schedules.urls")),
    path("t/<slug:team>/triggers/", include("spakweb.face.triggers.urls")),
    path("t/<slug:team>/sources/", include("spakweb.face.sources.urls")),
    path("t/<slug:team>/sources/", include("spakweb.face.folders.urls")),
    path("t/<slug:team>/problems/", include("spakweb.face.specs.problem_urls")),
    path("t/<slug:team>/ci/", include("spakweb.face.oidc.urls")),
    path("t/<slug:team>/audit/", include("spakweb.face.audit.urls")),
    path("docs/", include("spakweb.face.docs.urls")),
    path("api/", docs.explorer, name="spak-explorer"),
    path("api/v1/schema/", schema.schema, name="spak-schema"),
    path("api/v1/", include("spakweb.face.api.urls")),
    path("mcp", mcp.answer, name="spak-mcp"),
    path("t/<slug:team>/fleet/", include("spakweb.face.fleet.urls")),
    path("t/<slug:team>/work/", include("spakweb.face.jobs.urls")),
]

handler400 = "spakweb.ground.web.error_pages.bad_request"
handler403 = "spakweb.ground.web.error_pages.forbidden"
handler404 = "spakweb.ground.web.error_pages.not_found"
handler429 = "spakweb.ground.web.error_pages.too_many"
handler500 = "spakweb.ground.web.error_pages.server_error"
