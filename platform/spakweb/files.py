"""How static files are named: with a hash in production, as they are on one's own machine."""

from __future__ import annotations

from django.contrib.staticfiles.storage import StaticFilesStorage
from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedFiles(CompressedManifestStaticFilesStorage):
    """Names with a hash and compressed twins; imports of ES modules are rewritten too."""

    support_js_module_import_aggregation = True


class PlainFiles(StaticFilesStorage):
    """Names as they are: no `collectstatic` before a start."""
