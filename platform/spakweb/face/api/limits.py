"""How many requests of the API a token or a person may make in a minute: `Limit`, which each view asks.

`RateLimit` says in every answer what is left. Source: draft-ietf-httpapi-ratelimit-headers-10.
"""

from __future__ import annotations

from math import ceil

from rest_framework.request import Request
from rest_framework.throttling import UserRateThrottle
from rest_framework.views import APIView

WRITES_PER_MINUTE, READS_PER_MINUTE = 240, 1200
LIMIT_S = 60


class Limit(UserRateThrottle):
    """So many requests of one token or person in a minute: writes fewer than reads."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Count the request; what is over the limit is a 429 with Retry-After."""
        safe = request.method in ("GET", "HEAD")
        self.scope = "read" if safe else "write"
        self.rate = f"{READS_PER_MINUTE if safe else WRITES_PER_MINUTE}/min"
        self.num_requests, self.duration = self.parse_rate(self.rate)
        may = bool(super().allow_request(request, view))
        left = max(0, self.num_requests - len(self.history))
        oldest = self.history[-1] if self.history else self.now
        reset = max(0, ceil(oldest + self.duration - self.now))
        request.limit = {
            "RateLimit": f'"{self.scope}";r={left};t={reset}',
            "RateLimit-Policy": f'"{self.scope}";q={self.num_requests};w={LIMIT_S}',
        }
        return may

    def get_rate(self) -> str:
        """The rate that it begins with."""
        return f"{READS_PER_MINUTE}/min"

    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        """A count for each token, and one for each person without."""
        token = request.auth
        return f"api:{self.scope}:{request.user.pk}:{token.pk if token else 0}"
