"""Specs and addresses that tests of the pages of runs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.urls import reverse

from spakweb.store.runs.models import Run

Ran = Callable[..., Run]
ASKING = """\
task Talk {
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""
WITH_INPUT = """\
AGENT Sized LEVEL 2 {
  INPUTS { size: int = 3 }
  START -> make
  TASK make {
    step write: tool.write_file { path: "size.txt" content: "{{input.size}}" }
  }
}
"""


def url(view: str, run: Run, **more: Any) -> str:
    return reverse(view, kwargs={"team": run.team.slug, "run": run.key, **more})


def body(answer: Any) -> str:
    return answer.content.decode()
