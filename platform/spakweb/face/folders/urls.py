"""Addresses of a source's folder, below /t/<team>/sources/."""

from __future__ import annotations

from django.urls import path

from spakweb.face.folders import views

urlpatterns = [path("s/<slug:source>/folder/", views.act, name="spak-folder-do")]
