"""Addresses of the fleet, as a team sees it."""

from __future__ import annotations

from django.urls import path

from spakweb.face.fleet import views

urlpatterns = [path("", views.fleet, name="spak-fleet")]
