"""Addresses of the API, below /api/v1/; programs ask all of them with a token. Each module enters its own."""

from __future__ import annotations

from spakweb.face.api import schema  # noqa: F401  it makes tokens known to the schema
from spakweb.face.api.operations import patterns
from spakweb.face.api.views import (  # noqa: F401  they enter their operations
    campaigns,
    folders,
    guarded,
    incoming,
    oidc,
    places,
    problems,
    reviews,
    run_acts,
    run_files,
    runs,
    schedules,
    sources,
    specs,
    streams,
    suites,
    team,
    triggers,
    versions,
)

urlpatterns = list(patterns())
