"""Addresses of a team's rules for jobs of a CI, below /t/<team>/ci/."""

from __future__ import annotations

from django.urls import path

from spakweb.face.oidc import views

urlpatterns = [
    path("", views.rule_list, name="spak-oidc-list"),
    path("new/", views.new, name="spak-oidc-new"),
    path("<int:rule>/remove/", views.remove, name="spak-oidc-remove"),
]
