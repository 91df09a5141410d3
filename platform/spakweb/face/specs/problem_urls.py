"""Addresses of a team's problems, below /t/<team>/problems/."""

from __future__ import annotations

from django.urls import path

from spakweb.face.specs import problem_views as views

urlpatterns = [
    path("", views.problem_list, name="spak-problem-list"),
    path("save/", views.save, name="spak-problem-save"),
    path("<int:problem>/", views.problem_page, name="spak-problem"),
    path("<int:problem>/text/", views.text, name="spak-problem-text"),
    path("<int:problem>/do/", views.act, name="spak-problem-do"),
]
