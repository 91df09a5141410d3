"""Addresses of a team's sources, below /t/<team>/sources/."""

from __future__ import annotations

from django.urls import path

from spakweb.face.sources import views

urlpatterns = [
    path("", views.source_list, name="spak-source-list"),
    path("new/", views.new, name="spak-source-new"),
    path("s/<slug:source>/", views.source_page, name="spak-source"),
    path("s/<slug:source>/do/", views.act, name="spak-source-do"),
]
