"""Addresses of runs, below /t/<team>/runs/, and of what starts one, below a spec."""

from __future__ import annotations

from django.urls import path

from spakweb.runs import compare, dashboards_page, listed, views, views_act

urlpatterns = [
    path("runs/", views.run_list, name="spak-run-list"),
    path("runs/import/", views_act.bring, name="spak-run-import"),
    path("runs/bulk/", views_act.bulk, name="spak-run-bulk"),
    path("runs/views/", views_act.keep_view, name="spak-run-view"),
    path("runs/compare/", compare.compare, name="spak-run-compare"),
    path("runs/<str:run>/", views.run_page, name="spak-run"),
    path("runs/<str:run>/head/", views.head_part, name="spak-run-head"),
    path("runs/<str:run>/live/", views.live_part, name="spak-run-live"),
    path("runs/<str:run>/r/<int:seq>/", views.record_page, name="spak-run-record"),
    path("runs/<str:run>/r/<int:seq>/prompt/", views.prompt_part, name="spak-run-prompt"),
    path("runs/<str:run>/answer/", views_act.answer, name="spak-run-answer"),
    path("runs/<str:run>/decide/", views_act.decide, name="spak-run-decide"),
    path("runs/<str:run>/control/", views_act.control, name="spak-run-control"),
    path("runs/<str:run>/delete/", views_act.delete, name="spak-run-delete"),
    path("runs/<str:run>/labels/", views_act.labels, name="spak-run-labels"),
    path("runs/<str:run>/check/", views_act.check, name="spak-run-check"),
    path("runs/<str:run>/fork/", views.fork_page, name="spak-run-fork"),
    path("runs/<str:run>/fork/go/", views_act.fork, name="spak-run-fork-go"),
    path("runs/<str:run>/export/", views_act.download, name="spak-run-export"),
    path("runs/<str:run>/log/", views_act.log_text, name="spak-run-log"),
    path("runs/<str:run>/report/", views_act.report, name="spak-run-report"),
    path("runs/<str:run>/files/", listed.files, name="spak-run-files"),
    path("runs/<str:run>/files/<path:name>", views_act.artifact, name="spak-run-artifact"),
    path("specs/<slug:spec>/health/", dashboards_page.health_page, name="spak-spec-health"),
    path("specs/<slug:spec>/run/", views.new, name="spak-run-new"),
    path("specs/<slug:spec>/run/start/", views_act.start, name="spak-run-start"),
]
