"""An attack: the steps of a spec, what lies in the folder and its settings; and the text of that spec.

`@BASE@` in a text is the folder in which the world lies, `@TCP@`, `@UDP@` and `@ABSTRACT@` are where somebody
listens, `@RAN@` is a folder of the host: a file that comes to be there shows that code ran outside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WAIT_S = 20


@dataclass(frozen=True, slots=True)
class Attack:
    """What is done; `then` are steps of a second task, after a check that passes."""

    name: str
    steps: tuple[Step, ...]
    then: tuple[Step, ...] = ()
    config: str = ""
    check: str = 'VALIDATOR Command { cmd: "true" }'
    files: Mapping[str, str] = field(default_factory=dict)
    """What lies in the folder besides, and is committed."""
    settings: str = ""
    """Of `spak.toml`, beyond the limits of a job."""
    in_place: bool = False
    confirmed: bool = False
    """Whether the person confirms all that waits."""
    lands: tuple[str, ...] = ()
    """Paths whose arrival in the folder is the harm: what obeys them is not on this machine."""
    following: tuple[str, ...] = ()
    """What a person has `spak` do afterwards, in the folder `part`: the next run is a victim too."""


class Step(str):
    """The text of a step, with what it calls."""

    tool: str
    args: Mapping[str, Any]


def tool(name: str, **args: Any) -> Step:
    """A step that calls a tool."""
    given = ", ".join(f"{key}: {_written(value)}" for key, value in args.items())
    step = Step(
        f"tool.{name} {{ {given} on_fail: continue }}" if given else f"tool.{name} {{ on_fail: continue }}"
    )
    step.tool, step.args = name, args
    return step


def python(code: str) -> Step:
    """A step that runs Python."""
    return tool("python_repl", code=code, timeout_s=WAIT_S)


def line(text: str, **more: Any) -> Step:
    """A step that runs a line of a shell."""
    return tool("run", cmd=["bash", "-c", text], timeout_s=WAIT_S, **more)


def write(path: str, content: str) -> Step:
    """A step that writes a file by the tool for it."""
    return tool("write_file", path=path, content=content)


def spec(attack: Attack, places: Mapping[str, str]) -> str:
    """The text of the attack's spec, with the places filled in."""
    head = "MODE full_auto, BUDGET { watchdog: 99 }"
    first = _task("first", attack.steps, attack.check if attack.then or "PyTest" in attack.check else "")
    text = f"AGENT Attack LEVEL 4 {{\nCONFIG {{ {head} {attack.config} }}\nSTART -> first\n{first}"
    if attack.then:
        text = text.removesuffix("}\n") + "NEXT { success -> second } }\n" + _task("second", attack.then, "")
    return filled(text + "}\n", places)


def filled(text: str, places: Mapping[str, str]) -> str:
    """The text with each `@NAME@` replaced."""
    return re.sub("|".join(places), lambda found: places[found[0]], text)


def _task(name: str, steps: tuple[Step, ...], check: str) -> str:
    lines = "\n".join(f"  step {name}{number}: {step}" for number, step in enumerate(steps))
    return f"TASK {name} {{\n{lines}\n{check} }}\n"


def _written(value: Any) -> str:
    """A value as a spec has it: texts as JSON has them, but for escapes of signs beyond ASCII."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key}: {_written(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
