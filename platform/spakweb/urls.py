"""Every address of the platform. What is a team's has the team in its address: a link means one thing."""

from __future__ import annotations

from django.urls import include, path

from spakweb.home import metrics
from spakweb.home import views as home
from spakweb.live import events
from spakweb.runs.pages import badges, json_lists

urlpatterns = [
    path("", home.home, name="spak-home"),
    path("theme/", home.theme, name="spak-theme"),
    path("first/", home.put_away, name="spak-first-away"),
    path("metrics", metrics.metrics, name="spak-metrics"),
    path("palette/", home.palette, name="spak-palette"),
    path("badge/<str:secret>.svg", badges.by_link, name="spak-badge"),
    path("badge/<slug:team>/<slug:spec>.svg", badges.public, name="spak-badge-public"),
    path("healthz", home.healthz, name="spak-healthz"),
    path("readyz", home.readyz, name="spak-readyz"),
    path("account/", include("allauth.urls")),
    path("", include("spakweb.teams.urls")),
    path("t/<slug:team>/", home.team_home, name="spak-team-home"),
    path("t/<slug:team>/specs/", include("spakweb.specs.urls")),
    path("t/<slug:team>/specs/<slug:spec>/", include("spakweb.editor.urls")),
    path("t/<slug:team>/", include("spakweb.reviews.urls")),
    path("t/<slug:team>/", include("spakweb.suites.urls")),
    path("t/<slug:team>/", include("spakweb.campaigns.urls")),
    path("t/<slug:team>/", include("spakweb.runs.urls")),
    path("t/<slug:team>/runs/events", events.team_events, name="spak-team-events"),
    path("t/<slug:team>/runs/<str:key>/events", events.run_events, name="spak-run-events"),
    path("t/<slug:team>/runs.json", json_lists.runs, name="spak-team-runs"),
    path("t/<slug:team>/webhooks/", include("spakweb.hooks.urls")),
    path("t/<slug:team>/runs/<str:run>/", include("spakweb.sources.run_urls")),
    path("t/<slug:team>/schedules/", include("spakweb.schedules.urls")),
    path("t/<slug:team>/triggers/", include("spakweb.triggers.urls")),
    path("t/<slug:team>/sources/", include("spakweb.sources.urls")),
    path("t/<slug:team>/sources/", include("spakweb.folders.urls")),
    path("t/<slug:team>/problems/", include("spakweb.specs.problem_urls")),
    path("t/<slug:team>/ci/", include("spakweb.oidc.urls")),
    path("t/<slug:team>/audit/", include("spakweb.audit.urls")),
    path("api/v1/", include("spakweb.api.urls")),
    path("t/<slug:team>/fleet/", include("spakweb.fleet.urls")),
]

handler400 = "spakweb.error_pages.bad_request"
handler403 = "spakweb.error_pages.forbidden"
handler404 = "spakweb.error_pages.not_found"
handler429 = "spakweb.error_pages.too_many"
handler500 = "spakweb.error_pages.server_error"
