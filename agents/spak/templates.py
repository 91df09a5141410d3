"""Templates of specs: shipped examples under a name of one's own.

Takes a template and a name; gives the text of the spec. `spak new` writes it beside its files, the platform
makes a spec of it. A template is an example, so that it is checked and run as one.
"""

from __future__ import annotations

import re

from spak import data

TEMPLATES = {
    "tests": ("fix_tests", "mend failing tests"),
    "tuner": ("gemm_tuner", "make a C kernel faster"),
    "docs": ("module_docs", "document a module"),
    "data": ("data_cleaner", "clean files of data"),
}
"""Template to the example that it is, and what its specs do."""


def text_of(template: str, name: str) -> str:
    """The text of the template's example, its AGENT and its comment under that name.

    `name` has letters, digits, `-` and `_`, a letter first. Raises: KeyError, for another template.
    """
    example, _ = TEMPLATES[template]
    agent = "_".join(part[:1].upper() + part[1:] for part in re.split(r"[-_]+", name) if part)
    text = (data.path("specs/examples") / f"{example}.spak").read_text(encoding="utf-8")
    text = re.sub(r"^AGENT \w+", f"AGENT {agent}", text, count=1, flags=re.M)
    lines = text.replace(f"specs/examples/{example}", name).splitlines(keepends=True)
    return "".join(line.replace(example, name) if line.startswith("//") else line for line in lines)


def files_of(template: str, name: str) -> dict[str, bytes]:
    """What `spak new` writes of a template, by path: the spec NAME.spak, and its files in the folder NAME.

    Raises: KeyError, for another template.
    """
    source = data.path("specs/examples") / TEMPLATES[template][0]
    made = {f"{name}.spak": text_of(template, name).encode()}
    for path in sorted(source.rglob("*")):
        inside = path.relative_to(source)
        if path.is_file() and not any(part == "__pycache__" or part[0] == "." for part in inside.parts):
            made[f"{name}/{inside.as_posix()}"] = path.read_bytes()
    return made
