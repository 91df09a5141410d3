"""Answering what laws ask of the world: by the predicates that ship, and by those of the operator.

Takes questions of the policy (`spak.datalog.externals.Request`), predicates and a Look; gives every row that
fits, in the order of the questions. Rows, time and forms are bounded by each predicate's entry. What
goes wrong is an error and no shorter answer, so that the caller denies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from spak.cancel import Cancelled, apart
from spak.datalog.externals import Request
from spak.datalog.values import encode
from spak.errors import UsageError, UserError
from spak.paths import CODE, OURS
from spak.ports.predicates import Look, Predicate
from spak.tools.observe.code import OF_FILES
from spak.tools.observe.symbols import OF_SYMBOLS

__all__ = ["PREDICATES", "Table", "answers", "knowing", "signs"]

Row = tuple[Any, ...]
Table = Mapping[str, Predicate]
PREDICATES: Table = {**OF_FILES, **OF_SYMBOLS}
"""What ships."""


def answers(requests: list[Request], look: Look, own: Table = PREDICATES) -> list[list[Row]]:
    """The rows of each question; `own` are predicates besides those that ship.

    Raises: UsageError `world.*`, Cancelled.
    """
    table = {**own, **PREDICATES}
    return [_answer(request, table.get(request.pred), look) for request in requests]


def knowing(root: Path, own: Table = PREDICATES) -> Callable[[list[Request]], list[list[Row]]]:
    """`answers` about one workspace, for a policy that is asked by hand. Raises: UsageError `world.*`."""
    return lambda requests: answers(requests, Look(root, index=root / OURS / CODE), own)


def signs(mode: tuple[int, ...], columns: int) -> str:
    """A mode as entries and declarations write it: `+-`."""
    return "".join("+" if place in mode else "-" for place in range(columns))


def _answer(request: Request, predicate: Predicate | None, look: Look) -> list[Row]:
    columns = len(request.args)
    if predicate is None or len(predicate.entry.columns) != columns:
        hint = "name its package in [tools] packages; specs/policy/README.md lists what ships"
        raise UsageError("world.unknown", f"nobody answers {request}", hint)
    entry = predicate.entry
    if (asked := signs(request.mode, columns)) not in entry.modes:
        message = f"{entry.name} answers {' and '.join(entry.modes)}, and {asked} is asked"
        raise UsageError("world.unknown", message, f"ask {request} by another mode")

    def work() -> list[Row]:
        found = [_row(row, columns) for row in islice(predicate.rows(request.args, look), entry.max_rows + 1)]
        if len(found) > entry.max_rows:
            message = f"{entry.name} has more than {entry.max_rows} rows for {request}"
            raise UsageError("world.too_large", message, "ask for less at once")
        return [row for row in found if _fits(row, request)]

    try:
        return apart(work, look.cancel, limit_s=entry.timeout_s)
    except (UserError, Cancelled):
        raise
    except TimeoutError as error:
        message = f"{entry.name} gave no answer within {entry.timeout_s:g} s"
        raise UsageError("world.timeout", message, "make it faster, or let it say a longer time") from error
    except OSError as error:
        raise UsageError(
            "world.unreadable", f"{entry.name}: {error.strerror or error}", "fix its permissions"
        ) from error
    except Exception as error:  # code of others may raise anything
        message = f"{entry.name}: {type(error).__name__}: {error}"[:400]
        raise UsageError("world.failed", message, "mend the predicate; spak.testing tries it") from error


def _row(row: Any, columns: int) -> Row:
    """Raises: ValueError for a row of another length; PolicyError for a value that no fact has."""
    made = tuple(row)
    if isinstance(row, str) or len(made) != columns:
        raise ValueError(f"{row!r:.80} is not a row of {columns} columns")
    for value in made:
        encode(value)
    return made


def _fits(row: Row, request: Request) -> bool:
    return all(asked is None or asked == value for asked, value in zip(request.args, row, strict=True))
