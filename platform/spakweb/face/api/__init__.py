"""The REST API below /api/v1/ (docs/ci.md, docs/openapi.yaml)."""
