"""Addresses of runs, below /t/<team>/runs/, and of what starts one, below a spec."""

from __future__ import annotations

from django.urls import path

from spakweb.face.runs import compare, findings, post_views, spec_health, start_files, views

urlpatterns = [
    path("runs/", views.run_list, name="spak-run-list"),
    path("runs/import/", post_views.bring, name="spak-run-import"),
    path("runs/bulk/", post_views.bulk, name="spak-run-bulk"),
    path("runs/views/", post_views.keep_view, name="spak-run-view"),
    path("runs/compare/", compare.compare, name="spak-run-compare"),
    path("runs/<str:run>/", views.run_page, name="spak-run"),
    path("runs/<str:run>/head/", views.head_part, name="spak-run-head"),
    path("runs/<str:run>/r/<int:seq>/", views.record_page, name="spak-run-record"),
    path("runs/<str:run>/r/<int:seq>/prompt/", views.prompt_part, name="spak-run-prompt"),
    path("runs/<str:run>/answer/", post_views.answer, name="spak-run-answer"),
    path("runs/<str:run>/decide/", post_views.decide, name="spak-run-decide"),
    path("runs/<str:run>/take-back/", post_views.take_back, name="spak-run-take-back"),
    path("runs/<str:run>/spec/", post_views.make_spec, name="spak-run-spec"),
    path("runs/<str:run>/mend/", post_views.mend, name="spak-run-mend"),
    path("runs/<str:run>/control/", post_views.control, name="spak-run-control"),
    path("runs/<str:run>/delete/", post_views.delete, name="spak-run-delete"),
    path("runs/<str:run>/labels/", post_views.labels, name="spak-run-labels"),
    path("runs/<str:run>/check/", post_views.check, name="spak-run-check"),
    path("runs/<str:run>/fork/", views.fork_page, name="spak-run-fork"),
    path("runs/<str:run>/fork/go/", post_views.fork, name="spak-run-fork-go"),
    path("runs/<str:run>/export/", post_views.download, name="spak-run-export"),
    path("runs/<str:run>/log/", post_views.log_text, name="spak-run-log"),
    path("runs/<str:run>/report/", post_views.report, name="spak-run-report"),
    path("runs/<str:run>/candidates/<int:seq>/", post_views.candidate, name="spak-run-candidate"),
    path("runs/<str:run>/files/<path:name>", post_views.artifact, name="spak-run-artifact"),
    path("specs/<slug:spec>/health/", spec_health.health_page, name="spak-spec-health"),
    path("specs/<slug:spec>/health/findings/", findings.findings_part, name="spak-spec-findings"),
    path("specs/<slug:spec>/run/", views.new, name="spak-run-new"),
    path("specs/<slug:spec>/run/files/", start_files.bring, name="spak-run-bring"),
    path("specs/<slug:spec>/run/start/", post_views.start, name="spak-run-start"),
]
