"""Folders of a workspace are walked by `spak.files.walk`; other walks are listed here with their reasons."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "agents/spak"
OTHERS = {
    "client/files.py": "a folder that a person names, sent whole where git has no say in it",
    "cli/apply.py": "names of one folder of the user's own, to tell whether cases count; nothing is opened",
    "compliance/tree.py": "a workspace of a runtime, compared whole: rights and targets of links count",
    "compliance/trees.py": "a folder at random, that the kit made a moment ago",
    "data.py": "the sources of SPAK itself, to hash them",
    "cli/fmt.py": "a folder that a person names on the command line, outside of any run",
    "workspace/watch.py": "names of folders at any depth, to hear of changes in them; nothing is opened",
    "files/disk.py": "removes a tree of any depth",
    "files/scratch.py": "names of temporary folders, outside of any workspace",
    "files/walk.py": "the walker",
    "proposers/repair/lab.py": "folders of byte code at any depth, by name, to hide them; nothing is opened",
    "proposers/repair/installed.py": "names of modules, to hide installed copies; nothing is opened",
    "sandbox/at_home.py": "looks at the user's own folder, for what is no file",
    "sandbox/quota.py": "counts the files of a workspace while a job writes them, nothing is opened",
    "sandbox/slots.py": "what a sandbox of ours left behind, outside of any workspace",
    "evolve/suites/model.py": "the folder of a case, hashed whole: every file and link counts",
    "evolve/suites/sealed.py": "the folder of a case, copied whole",
    "templates.py": "the files of an example that ships",
    "testing.py": "the folder that a test of a tool made a moment ago",
    "tools/observe/paths.py": "patterns of a command line, matched as the shell would; nothing is opened",
    "workspace/apply.py": "restores every file of a snapshot, also those that no tool may read",
    "workspace/brought.py": "names of a folder that belongs to no repository, before any copy of it is there",
    "workspace/secret_files.py": "names of secrets at any depth, nothing is opened",
    "workspace/tree.py": "takes the snapshot: every file, at any depth",
}


def walks(node: ast.Attribute) -> bool:
    of_os = isinstance(node.value, ast.Name) and node.value.id == "os"
    return node.attr in ("rglob", "iglob") or (of_os and node.attr in ("walk", "fwalk", "scandir"))


def test_who_walks_folders() -> None:
    found = set()
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.Attribute) and walks(node) for node in ast.walk(tree)):
            found.add(str(path.relative_to(SOURCE)))
    assert found == set(OTHERS), "use spak.files.walk, or say above why not"
