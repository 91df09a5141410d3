"""The message of all kinds of work: a kind and a key."""

from __future__ import annotations

from celery import shared_task

from spakweb.work.jobs import queue, work


@shared_task(name=queue.TASK, acks_late=True, ignore_result=True)
def do(kind: str, key: str) -> None:
    """Do a job, unless another worker does or it is not wanted."""
    work.do(kind, key)
