"""Addresses of specs, versions and tags."""

from __future__ import annotations

from typing import Any

urlpatterns: list[Any] = []
