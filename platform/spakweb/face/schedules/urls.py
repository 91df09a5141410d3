"""Addresses of a team's schedules, below /t/<team>/schedules/."""

from __future__ import annotations

from django.urls import path

from spakweb.face.schedules import views

urlpatterns = [
    path("", views.schedule_list, name="spak-schedule-list"),
    path("new/", views.new, name="spak-schedule-new"),
    path("<int:schedule>/do/", views.act, name="spak-schedule-do"),
]
