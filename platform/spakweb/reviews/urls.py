"""Addresses of patches, below /t/<team>/specs/<spec>/patches/, and the team's inbox of reviews."""

from __future__ import annotations

from django.urls import path

from spakweb.reviews import views

urlpatterns = [
    path("reviews/", views.inbox, name="spak-reviews"),
    path("specs/<slug:spec>/patches/", views.patch_list, name="spak-patch-list"),
    path("specs/<slug:spec>/patches/propose/", views.propose, name="spak-patch-propose"),
    path("specs/<slug:spec>/patches/protect/", views.protect, name="spak-spec-protect"),
    path("specs/<slug:spec>/patches/<int:patch>/", views.page, name="spak-patch"),
    path("specs/<slug:spec>/patches/<int:patch>/do/", views.act, name="spak-patch-do"),
]
