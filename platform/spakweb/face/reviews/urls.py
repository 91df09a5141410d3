"""Addresses of patches, below /t/<team>/specs/<spec>/patches/, and the team's inbox of reviews."""

from __future__ import annotations

from django.urls import path

from spakweb.face.reviews import views, views_rules

ONE = "specs/<slug:spec>/patches/<int:patch>/"

urlpatterns = [
    path("reviews/", views.inbox, name="spak-reviews"),
    path("reviews/rules/", views_rules.team_rules, name="spak-review-rules"),
    path("reviews/rules/save/", views_rules.protect_team, name="spak-review-rules-save"),
    path("specs/<slug:spec>/patches/", views.patch_list, name="spak-patch-list"),
    path("specs/<slug:spec>/patches/propose/", views.propose, name="spak-patch-propose"),
    path("specs/<slug:spec>/patches/protect/", views_rules.protect, name="spak-spec-protect"),
    path("specs/<slug:spec>/blame/", views.blame_page, name="spak-spec-blame"),
    path("specs/<slug:spec>/history.jsonl", views.history_file, name="spak-spec-history-file"),
    path(ONE, views.patch, name="spak-patch"),
    path(f"{ONE}status/", views.status, name="spak-patch-status"),
    path(f"{ONE}more/", views.more, name="spak-patch-more"),
    path(f"{ONE}graph/", views.graph, name="spak-patch-graph"),
    path(f"{ONE}text/", views.text, name="spak-patch-text"),
    path(f"{ONE}conflicts/", views.conflicts, name="spak-patch-conflicts"),
    path(f"{ONE}viewed/", views.viewed, name="spak-patch-viewed"),
    path(f"{ONE}revise/", views.revise, name="spak-patch-revise"),
    path(f"{ONE}do/", views.act, name="spak-patch-do"),
]
