"""The runs of a seed: specs whose effects show whether they were done once, in order and undone."""

from __future__ import annotations

from typing import Any

MARKS = """\
task Marks {
  step one: tool.run { cmd: "mark one" }
  step look: tool.list_files { path: "." }
  step tell: tool.run { cmd: "send tell" }
  step two: tool.run { cmd: "mark two" }
  step bill: tool.run { cmd: "once bill" }
  step keep: tool.write_file { path: "kept.txt" content: "kept" }
  success: file_exists("log")
}
"""
HALF = """\
AGENT Half LEVEL 4 {
  START -> grow
  TASK grow {
    step first: tool.run { cmd: "mark first" }
    step broken: tool.run { cmd: "break off" on_fail: stop }
    NEXT { fail -> tidy, success -> tidy }
  }
  TASK tidy {
    step last: tool.run { cmd: "mark last" }
    step tell: tool.run { cmd: "send tidy" }
  }
}
"""
TALK = """\
task Talk {
  step before: tool.run { cmd: "mark before" }
  step hear: llm.query { prompt: "Say a word." output_var: word }
  step keep: tool.write_file { path: "word.txt" content: "{{word}}" }
  step after: tool.run { cmd: "mark after" }
  success: file_exists("word.txt")
}
"""
POLL = """\
task Poll {
  step ready: tool.run { cmd: "due parcel 3" poll: { every_s: 2 limit: 9 } }
  step look: tool.list_files { path: "." }
  step take: tool.run { cmd: "mark parcel" }
}
"""
SPECS = {"marks": MARKS, "half": HALF, "talk": TALK, "poll": POLL}
WORDS = {
    "marks": ["one", "two"],
    "half": ["first", "last"],
    "talk": ["before", "after"],
    "poll": ["parcel"],
}
"""What `log` of a run that came to its end must hold, word by word."""


def make() -> None:
    """The team and its specs, in the prepared database."""
    from spakweb.ground.teams.models import User
    from spakweb.work.specs.actions import create_spec
    from spakweb.work.teams.actions import create_team

    alice = User.objects.create_user("alice", "alice@spak.example", "a long secret")
    team = create_team(alice, "Tuners")
    for name, text in SPECS.items():
        create_spec(alice, team, name, text)


def start(name: str, key: str, *, backend: str = "", seed: int = 1) -> Any:
    """A run of one of the specs, as a person starts it."""
    from spakweb.ground.teams.models import User
    from spakweb.store.specs.models import Spec
    from spakweb.work.runs import actions

    actions.new_key = lambda: key
    user = User.objects.get()
    return actions.start(user, Spec.objects.get(slug=name), mode="full_auto", backend=backend, seed=seed)
