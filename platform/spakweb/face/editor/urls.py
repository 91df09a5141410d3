"""Addresses of the editor of one spec and of its patches, below `t/TEAM/specs/SPEC/`."""

from __future__ import annotations

from django.urls import path

from spakweb.face.editor import views

urlpatterns = [
    path("edit/", views.editor, name="spak-editor"),
    path("patches/<int:patch>/edit/", views.patch_editor, name="spak-patch-editor"),
    path("edit/ask/<slug:what>", views.ask, name="spak-editor-ask"),
    path("edit/draft", views.draft, name="spak-editor-draft"),
    path("edit/token", views.token, name="spak-editor-token"),
]
