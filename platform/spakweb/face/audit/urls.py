"""Addresses of what happened in a team."""

from __future__ import annotations

from django.urls import path

from spakweb.face.audit import views

urlpatterns = [
    path("", views.events, name="spak-audit"),
    path("export/", views.export, name="spak-audit-export"),
]
