"""A job in the hands of a worker: what an action writes by it is kept if the worker still has the job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet

from spakweb.ground import clock
from spakweb.store.jobs.leases import until
from spakweb.store.jobs.models import Job


class Lost(Exception):
    """This worker holds the job no longer: another took it, or it was called off."""


class Hold:
    """A job that this worker holds, under a lease that ends by itself where the worker dies."""

    def __init__(self, row: Job, longest: timedelta) -> None:
        self.row, self.key, self.tries = row, row.key, row.tries
        self.at = clock.now()
        """When it was taken."""
        self._ends = self.at + longest

    @property
    def mine(self) -> QuerySet[Job]:
        """The row, if no other worker had it since."""
        return Job.objects.filter(pk=self.row.pk, fence=self.row.fence)

    def confirm(self) -> None:
        """At the end of a transaction: until it commits no other worker can take the job. Raises: Lost."""
        if self.mine.select_for_update(no_key=True).values_list("pk").first() is None:
            raise Lost

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that is kept if this worker still holds the job. Raises: Lost."""
        with transaction.atomic():
            yield
            self.confirm()

    def keep(self) -> bool:
        """Renew the lease; False when it is lost, or over since the kind's `longest` has passed."""
        now = clock.now()
        return now < self._ends and bool(self.mine.update(lease_until=until(now)))
