"""`read_ast`: what a source file defines, with lines: Python by its syntax tree, C and CUDA by an outline.

Python is parsed by an interpreter in the sandbox, with the file's content on its input: the parser of a
hostile file may take all memory or crash, and then it does so there. The outline of C is our own and runs
here (`spak.tools.outline`); it takes one pass.
"""

from __future__ import annotations

import posixpath

from spak import canon
from spak import schema_parts as parts
from spak.files import beneath
from spak.lang.catalog import ToolEntry
from spak.ports import Call, ToolResult
from spak.tools import inside, results
from spak.tools.outline import outline

MAX_BYTES = 1 << 20
MAX_SYMBOLS = 5000
_PYTHON = (".py", ".pyi")
_C = (".c", ".h", ".cu", ".cuh", ".cc", ".cpp", ".hpp")
_GUEST = r"""
import ast, json, sys, warnings
warnings.simplefilter("ignore")
def shown(node):
    text = ast.unparse(node)
    return text if len(text) <= 200 else text[:197] + "..."
def walk(body, prefix):
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            is_class = isinstance(node, ast.ClassDef)
            sign = ", ".join(map(shown, node.bases)) if is_class else shown(node.args)
            yield {"kind": "class" if is_class else "function", "name": prefix + node.name,
                   "line": node.lineno, "end_line": node.end_lineno, "signature": f"({sign})"}
            yield from walk(node.body, prefix + node.name + ".")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield {"kind": "import", "name": alias.name, "line": node.lineno}
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                yield {"kind": "import", "name": f"{module}.{alias.name}", "line": node.lineno}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield {"kind": "variable", "name": prefix + target.id, "line": node.lineno}
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from walk(node.body, prefix)
            yield from walk(getattr(node, "orelse", []), prefix)
try:
    tree = ast.parse(sys.stdin.buffer.read())
except SyntaxError as error:
    print(json.dumps({"error": error.msg, "line": error.lineno or 0}))
    sys.exit(1)
except (ValueError, RecursionError, MemoryError) as error:
    print(json.dumps({"error": str(error) or type(error).__name__, "line": 0}))
    sys.exit(1)
print(json.dumps(list(walk(tree.body, ""))))
"""


class ReadAst:
    """The tool `read_ast`."""

    entry = ToolEntry(
        name="read_ast",
        version=1,
        summary="Lists what a Python, C or CUDA file defines, with lines, as JSON.",
        schema=parts.members(["path"], path=parts.path()),
        effect="pure",
        writes=False,
        idempotent=True,
        arguments={"path": "reads"},
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_read, call)


def _read(call: Call) -> ToolResult:
    path = str(call.args["path"])
    suffix = posixpath.splitext(path)[1].lower()
    if suffix not in _PYTHON + _C:
        known = " ".join(_PYTHON + _C)
        return results.failed(
            "read_ast.language", f"{path!a} is in no language known here", f"known: {known}"
        )
    data = beneath.read_beneath(call.workspace, path, MAX_BYTES)
    if suffix in _C:
        symbols = outline(data.decode("utf-8", "replace"))
        return _shown("cuda" if suffix in (".cu", ".cuh") else "c", symbols, data)
    python = inside.program(call, "python")
    if not python:
        return results.failed(
            "read_ast.missing", "the toolchain has no python", "spak doctor lists what to install", exit=127
        )
    outcome = inside.run(
        call,
        (python, "-I", "-B", "-c", _GUEST),
        writable=False,
        timeout_s=20,
        stdin=data,
        output_bytes=8 << 20,
    )
    if outcome.status == "crash" or (outcome.status == "exited" and outcome.exit > 1):
        return results.failed("read_ast.parser", f"Python's parser gave up on {path!a}", "is the file sound?")
    if outcome.status != "exited" or outcome.stdout.truncated:
        return results.of_outcome(outcome)
    value = canon.loads(outcome.stdout.data)
    if isinstance(value, dict):
        return results.failed(
            "read_ast.syntax", f"{path}: {value['error']}", "fix it first", file=path, line=value["line"]
        )
    return _shown("python", value, data)


def _shown(language: str, symbols: list[dict[str, object]], data: bytes) -> ToolResult:
    shown: dict[str, object] = {"language": language, "symbols": symbols[:MAX_SYMBOLS]}
    if len(symbols) > MAX_SYMBOLS:
        shown["left_out"] = len(symbols) - MAX_SYMBOLS
    return results.done(canon.dumps(shown) + b"\n", sha256=canon.digest(data))
