"""Specs and runs that tests of the worker begin."""

from __future__ import annotations

from typing import Any

from spakweb.ground.teams.models import User
from spakweb.store.runs.models import Run
from spakweb.work.runs.actions import start
from spakweb.work.specs.actions import create_spec
from spakweb.work.teams.actions import create_team

ASKING = """\
task Talk {
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  success: file_exists("word.txt")
}
"""
HELLO = """\
task Hello {
  step greet: tool.write_file { path: "hello.txt" content: "Hello" }
  success: file_contains("hello.txt", "Hello")
}
"""


def begun(user: User, text: str, **options: Any) -> Run:
    team = user.memberships.first().team if user.memberships.exists() else create_team(user, "Tuners")
    spec = create_spec(user, team, f"spec {team.specs.count()}", text)
    return start(user, spec, **options)
