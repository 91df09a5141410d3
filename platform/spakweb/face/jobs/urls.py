"""Addresses of a team's work."""

from __future__ import annotations

from django.urls import path

from spakweb.face.jobs import views

urlpatterns = [
    path("", views.work, name="spak-work"),
    path("<int:job>/retry/", views.retry, name="spak-work-retry"),
]
