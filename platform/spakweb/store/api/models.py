"""Answers that are kept for a day by their Idempotency-Key: the same request again does nothing."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class KeptAnswer(models.Model):
    """The answer to a request of somebody's that named a key."""

    asker = models.CharField(max_length=40)
    """The person, and the token where there was one."""
    key = models.CharField(max_length=200)
    request = models.CharField(max_length=43)
    """The hash of method, address, body and If-Match: with one key there is one request."""
    status = models.PositiveSmallIntegerField(default=0)
    body = models.JSONField(default=dict)
    headers = models.JSONField(default=dict)
    made_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("asker", "key"), name="one_answer_per_key"),)

    def __str__(self) -> str:
        return f"{self.asker} {self.key}"
