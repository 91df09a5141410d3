"""The documentation as pages of the platform: `/docs/`, its search, and the page of the API at `/api/`."""
