"""The table of tools: a new one is a line of `_ALL`, its file, and what CONTRIBUTING names.

Gives each tool by its name, and what its arguments are to the policy. It runs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spak.lang.catalog import USES
from spak.ports import Tool
from spak.tools.apply_patch import ApplyPatch
from spak.tools.cc import Cc
from spak.tools.code.model import CodeMap, FindSymbol, Impact, References
from spak.tools.code.search import SearchCode
from spak.tools.git_commit import GitCommit
from spak.tools.git_push import GitPush
from spak.tools.grep import Grep
from spak.tools.http_request import HttpRequest
from spak.tools.instantiate import Instantiate
from spak.tools.list_files import ListFiles
from spak.tools.nsight import Nsight
from spak.tools.nvcc import Nvcc
from spak.tools.outside import AskPerson, Contained, ModelRequest, Tunnel, TunnelClosed, Witnessed
from spak.tools.python_repl import PythonRepl
from spak.tools.read_ast import ReadAst
from spak.tools.read_file import ReadFile
from spak.tools.recall import Recall
from spak.tools.run import Run
from spak.tools.write_file import WriteFile

_ALL: tuple[Tool, ...] = (
    ApplyPatch(),
    AskPerson(),
    Cc(),
    CodeMap(),
    Contained(),
    FindSymbol(),
    GitCommit(),
    GitPush(),
    Grep(),
    HttpRequest(),
    Impact(),
    Instantiate(),
    ListFiles(),
    ModelRequest(),
    Nsight(),
    Nvcc(),
    PythonRepl(),
    ReadAst(),
    ReadFile(),
    Recall(),
    References(),
    Run(),
    SearchCode(),
    Tunnel(),
    TunnelClosed(),
    Witnessed(),
    WriteFile(),
)


def table(tools: Iterable[Tool]) -> dict[str, Tool]:
    """The tools by name. Raises: ValueError for one that does not declare what each of its arguments is."""
    made: dict[str, Tool] = {}
    for tool in tools:
        entry = tool.entry
        properties, declared = set(entry.schema["properties"]), set(entry.arguments)
        odd = {how for how in entry.arguments.values() if how.partition("=")[0].rstrip("?") not in USES}
        if properties != declared or odd:
            raise ValueError(
                f"{entry.name} does not declare its arguments: {sorted(properties ^ declared) or sorted(odd)}"
            )
        made[entry.name] = tool
    return made


TOOLS: dict[str, Tool] = table(_ALL)
DECLARED: dict[str, Mapping[str, str]] = {name: tool.entry.arguments for name, tool in TOOLS.items()}
"""What the arguments of each tool are, for `spak.policy.actions.World`."""
