"""Addresses of one spec's editor, below `t/TEAM/specs/SPEC/`."""

from __future__ import annotations

from django.urls import path

from spakweb.editor import views

urlpatterns = [
    path("edit/", views.editor, name="spak-editor"),
    path("edit/ask/<slug:what>", views.ask, name="spak-editor-ask"),
    path("edit/draft", views.draft, name="spak-editor-draft"),
    path("edit/token", views.token, name="spak-editor-token"),
]
