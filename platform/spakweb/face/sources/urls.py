"""Addresses of a team's sources, below /t/<team>/sources/."""

from __future__ import annotations

from django.urls import path

from spakweb.face.sources import code_views, views

urlpatterns = [
    path("", views.source_list, name="spak-source-list"),
    path("new/", views.new, name="spak-source-new"),
    path("s/<slug:source>/", views.source_page, name="spak-source"),
    path("s/<slug:source>/do/", views.act, name="spak-source-do"),
    path("s/<slug:source>/mend/", views.mend, name="spak-source-mend"),
    path("s/<slug:source>/code/", code_views.code, name="spak-source-code"),
    path("s/<slug:source>/code/read/", code_views.read, name="spak-source-code-read"),
]
