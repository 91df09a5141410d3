"""What the compiler tools share: which flags may be given, and how their diagnostics are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from spak.errors import UsageError

FLAG = (
    r"^(-O([0-3sgz]|fast)?|-g[0-3]?|-std=[a-z0-9+]+|-shared|-static|-pthread|-pedantic|-ansi|-w"
    r"|-m[a-z][A-Za-z0-9._+-]*(=[A-Za-z0-9_,.+-]+)?|-f[a-z][A-Za-z0-9+-]*(=[A-Za-z0-9_,.+-]+)?"
    r"|-W[a-z][a-z0-9+-]*(=[A-Za-z0-9_-]+)?|-[DU][A-Za-z_][A-Za-z0-9_]*(=[^\x00-\x1f]*)?"
    r"|-l[A-Za-z0-9_+.-]+|-I[A-Za-z0-9_.][A-Za-z0-9_./+-]*|--param=[a-z0-9-]+=[0-9]+)$"
)
"""The flags that may be given: none that names a program, a plug-in, a spec file or a path outside."""
OPTIONS = ("-frecord-gcc-switches", "-fdiagnostics-format=json", "-fmax-errors=20")
"""What every call gets: flags written into the object, diagnostics that can be read."""
CLANG_OPTIONS = (
    "-frecord-command-line",
    "-fno-color-diagnostics",
    "-fno-caret-diagnostics",
    "-ferror-limit=20",
    "-Wno-unused-command-line-argument",
)
"""The same of clang: one line for each diagnostic."""

_REFUSED = (
    "-fplugin",
    "-fprofile",
    "-fauto-profile",
    "-fdump",
    "-fdiagnostics",
    "-fuse-ld",
    "-fcompare-debug",
    "-fopt-info",
    "-fcallgraph-info",
    "-fstack-usage",
    "-fsave-optimization-record",
    "-fmem-report",
    "-ftime-report",
    "-fltrans",
    "-fresolution",
    "-fmodule",
    "-fno-record-gcc-switches",
    # of clang
    "-fpass-plugin",
    "-fcrash-diagnostics",
    "-fproc-stat-report",
    "-ftime-trace",
    "-fcs-profile",
    "-fcoverage",
    "-fno-record-command-line",
    "-mllvm",
    "-mlinker-version",
    "-foptimization-record",
)
"""Those that load code, write a file beside the output, print what is new each time, or hide the flags."""
_FLAG = re.compile(FLAG)
MAX_DIAGNOSTICS = 100
"""Of one call of a compiler."""


def checked(flags: Iterable[str]) -> list[str]:
    """The flags. Raises: UsageError `cc.flag` for one that is not on the list."""
    kept = []
    for flag in flags:
        outside = flag.startswith("-I") and ".." in flag[2:].split("/")
        if not _FLAG.match(flag) or flag.startswith(_REFUSED) or outside:
            raise UsageError(
                "cc.flag",
                f"the flag {flag[:80]!a} is not allowed",
                "use -O -g -std= -m -f -W -D -U -l -I below the workspace",
            )
        kept.append(flag)
    return kept


def definitions(defines: Mapping[str, Any]) -> list[str]:
    """`-D` flags, sorted by name. Raises: UsageError `cc.define`."""
    flags = []
    for name, value in sorted(defines.items()):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UsageError(
                "cc.define", f"{name[:80]!a} is no name for a macro", "use letters, digits and _"
            )
        if isinstance(value, bool):
            value = int(value)
        text = str(value)
        if re.search(r"[\x00-\x1f]", text):
            raise UsageError("cc.define", f"the value of {name} has a control character")
        flags.append(f"-D{name}={text}")
    return flags


def rendered(found: Iterable[Mapping[str, Any]], stderr: bytes) -> str:
    """The diagnostics one a line, as a compiler prints them, and then what else was printed."""
    rows = []
    for item in found:
        place = f"{item['file']}:{item['line']}: " if item["file"] else ""
        rows.append(f"{place}{item['severity']}: {item['message']} [{item['code']}]")
    rest = [row for row in stderr.decode("utf-8", "replace").split("\n") if row and not row.startswith("[")]
    return "".join(row + "\n" for row in (*rows, *rest))
