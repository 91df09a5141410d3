"""Addresses of a team's webhooks, below /t/<team>/webhooks/."""

from __future__ import annotations

from django.urls import path

from spakweb.face.hooks import views

urlpatterns = [
    path("", views.webhook_list, name="spak-webhook-list"),
    path("new/", views.new, name="spak-webhook-new"),
    path("<int:webhook>/", views.webhook_page, name="spak-webhook"),
    path("<int:webhook>/do/", views.act, name="spak-webhook-do"),
]
