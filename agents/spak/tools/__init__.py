"""The tools: one table, one small file per kind. Importing it starts and loads nothing heavy."""

from __future__ import annotations

from spak.ports import Tool
from spak.tools.apply_patch import ApplyPatch
from spak.tools.cc import Cc
from spak.tools.git_commit import GitCommit
from spak.tools.http_request import HttpRequest
from spak.tools.instantiate import Instantiate
from spak.tools.list_files import ListFiles
from spak.tools.nsight import Nsight
from spak.tools.nvcc import Nvcc
from spak.tools.python_repl import PythonRepl
from spak.tools.read_ast import ReadAst
from spak.tools.read_file import ReadFile
from spak.tools.recall import Recall
from spak.tools.run import Run
from spak.tools.write_file import WriteFile

_ALL: tuple[Tool, ...] = (
    ApplyPatch(),
    Cc(),
    GitCommit(),
    HttpRequest(),
    Instantiate(),
    ListFiles(),
    Nsight(),
    Nvcc(),
    PythonRepl(),
    ReadAst(),
    ReadFile(),
    Recall(),
    Run(),
    WriteFile(),
)

TOOLS: dict[str, Tool] = {tool.entry.name: tool for tool in _ALL}

__all__ = ["TOOLS"]
