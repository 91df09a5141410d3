"""Addresses of a team's triggers, below /t/<team>/triggers/."""

from __future__ import annotations

from django.urls import path

from spakweb.face.triggers import views

urlpatterns = [
    path("", views.trigger_list, name="spak-trigger-list"),
    path("new/", views.new, name="spak-trigger-new"),
    path("<int:trigger>/", views.trigger_page, name="spak-trigger"),
    path("<int:trigger>/do/", views.act, name="spak-trigger-do"),
]
