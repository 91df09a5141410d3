"""Addresses of the documentation, below /docs/."""

from __future__ import annotations

from django.urls import path

from spakweb.face.docs import views

urlpatterns = [
    path("", views.show, name="spak-docs"),
    path("search/", views.search, name="spak-docs-search"),
    path("img/<str:image>", views.show_image, name="spak-docs-image"),
    path("<path:page>/", views.show, name="spak-docs-page"),
]
