"""Addresses of what a run changed, below /t/<team>/runs/<run>/."""

from __future__ import annotations

from django.urls import path

from spakweb.face.sources import code_views, run_views

urlpatterns = [
    path("changes.patch", run_views.patch, name="spak-run-patch"),
    path("code/", code_views.run_code, name="spak-run-code"),
    path("code/read/", code_views.run_read, name="spak-run-code-read"),
    path("branches/ask/", run_views.ask, name="spak-branch-ask"),
    path("branches/<int:branch>/decide/", run_views.decide, name="spak-branch-decide"),
]
