"""Addresses of teams, members, invitations and one's own account."""

from __future__ import annotations

from django.urls import path

from spakweb.face.teams import views, views_rules, views_tokens

urlpatterns = [
    path("teams/new/", views.new, name="spak-team-new"),
    path("me/", views.account, name="spak-account"),
    path("me/keys/", views.single_keys, name="spak-single-keys"),
    path("me/tokens/new/", views_tokens.new, name="spak-token-new"),
    path("me/tokens/<int:token>/rotate/", views_tokens.rotate, name="spak-token-rotate"),
    path("me/tokens/<int:token>/revoke/", views_tokens.revoke, name="spak-token-revoke"),
    path("join/<str:secret>/", views.join, name="spak-join"),
    path("t/<slug:team>/members/", views.members, name="spak-team-members"),
    path("t/<slug:team>/members/<int:member>/role/", views.role, name="spak-member-role"),
    path("t/<slug:team>/members/<int:member>/remove/", views.remove, name="spak-member-remove"),
    path("t/<slug:team>/roles/", views.named_role, name="spak-named-role"),
    path("t/<slug:team>/roles/<int:role>/remove/", views.named_role_remove, name="spak-named-role-remove"),
    path("t/<slug:team>/rules/", views_rules.rules, name="spak-team-rules"),
    path("t/<slug:team>/rules/save/", views_rules.save, name="spak-team-rules-save"),
    path("t/<slug:team>/latest.checkpoint", views.checkpoint, name="spak-team-checkpoint"),
    path("t/<slug:team>/keep/", views.keep_runs, name="spak-team-keep"),
    path("t/<slug:team>/invite/", views.invite, name="spak-invite"),
    path("t/<slug:team>/invite/<int:invitation>/withdraw/", views.withdraw, name="spak-invite-withdraw"),
]
