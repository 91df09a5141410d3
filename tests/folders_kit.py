"""A folder of .spak files that is synced with specs of the team: texts of specs, a sync, what came of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sources_kit import Repository, git
from spakweb.store.folders.models import Folder
from spakweb.store.jobs.models import Job
from spakweb.store.specs.models import Spec, SpecVersion
from spakweb.work.folders import queue
from spakweb.work.jobs import work
from spakweb.work.specs.actions import save_version

SPEC = """\
AGENT {name} LEVEL 1 {{
  START -> one
  TASK one {{
    step a: tool.list_files {{ path: "{path}" }}
    NEXT {{ success -> two }}
  }}
  TASK two {{
    step b: tool.list_files {{ path: "." }}
  }}
}}
"""
WRONG = b"AGENT Broken { START -> nowhere }\n"
PAGE = "/t/kernel-tuners/sources/s/app/"


def spec(name: str = "Tune", path: str = ".") -> bytes:
    return SPEC.format(name=name, path=path).encode()


Push = Callable[..., str]


def synced(folder: Folder) -> list[tuple[str, str]]:
    """Sync it; gives path and outcome of each line."""
    queue.want(Folder.objects.filter(pk=folder.pk))
    work.do(queue.SYNC, str(folder.pk))
    folder.refresh_from_db()
    return [(line["path"], line["what"]) for line in folder.result]


def job() -> Job:
    """The job of the only folder."""
    return Job.objects.get(kind=queue.SYNC)


def words(folder: Folder) -> str:
    return " ".join(line["words"] for line in folder.result)


def of(slug: str) -> Spec:
    return Spec.objects.select_related("head", "team").get(slug=slug)


def changed(who: Any, slug: str, text: bytes | str) -> SpecVersion:
    """Somebody saves a version in the browser."""
    found = of(slug)
    data = text if isinstance(text, str) else text.decode()
    made = save_version(who, found, data, found.head.number, "By hand")
    assert isinstance(made, SpecVersion)
    return made


def in_git(repository: Repository, path: str, ref: str = "refs/heads/main") -> bytes:
    return (git(repository.folder, "show", f"{ref}:specs/{path}") + "\n").encode()
