"""Addresses of campaigns, below /t/<team>/."""

from __future__ import annotations

from django.urls import path

from spakweb.face.campaigns import views

urlpatterns = [
    path("campaigns/", views.campaign_list, name="spak-campaign-list"),
    path("campaigns/<int:number>/", views.campaign_page, name="spak-campaign"),
    path("campaigns/<int:number>/control/", views.control, name="spak-campaign-control"),
    path("campaigns/<int:number>/ledger/", views.ledger_file, name="spak-campaign-ledger"),
    path("specs/<slug:spec>/campaigns/", views.of_spec, name="spak-spec-campaigns"),
    path("specs/<slug:spec>/campaigns/begin/", views.begin, name="spak-campaign-begin"),
]
