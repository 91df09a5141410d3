"""Addresses of specs, versions and tags, below /t/<team>/specs/. The editor adds its own below a spec."""

from __future__ import annotations

from django.urls import path

from spakweb.face.specs import changes, views

urlpatterns = [
    path("", views.spec_list, name="spak-spec-list"),
    path("new/", changes.new, name="spak-spec-new"),
    path("import/", changes.bring, name="spak-spec-import"),
    path("gallery/", views.gallery, name="spak-gallery"),
    path("gallery/<slug:name>/", changes.copy, name="spak-gallery-copy"),
    path("<slug:spec>/", views.spec_detail, name="spak-spec-detail"),
    path("<slug:spec>/history/", views.history, name="spak-spec-history"),
    path("<slug:spec>/compare/", views.compare, name="spak-spec-compare"),
    path("<slug:spec>/save/", changes.save, name="spak-spec-save"),
    path("<slug:spec>/badge/", changes.badge, name="spak-spec-badge"),
    path("<slug:spec>/follow/", changes.follow_spec, name="spak-spec-follow"),
    path("<slug:spec>/archive/", changes.archive, name="spak-spec-archive"),
    path("<slug:spec>/draft/drop/", changes.drop_draft, name="spak-draft-drop"),
    path("<slug:spec>/v/<int:number>/", views.version, name="spak-version-detail"),
    path("<slug:spec>/v/<int:number>/text/", views.download, name="spak-version-download"),
    path("<slug:spec>/v/<int:number>/restore/", changes.restore, name="spak-version-restore"),
    path("<slug:spec>/v/<int:number>/tag/", changes.tag, name="spak-version-tag"),
    path("<slug:spec>/tags/<str:name>/remove/", changes.untag, name="spak-tag-remove"),
]
