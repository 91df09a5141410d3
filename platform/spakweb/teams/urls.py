"""Addresses of teams, members and invitations."""

from __future__ import annotations

from typing import Any

urlpatterns: list[Any] = []
