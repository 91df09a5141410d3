"""A folder of code and its model, for tests: files by name, edges as short text."""

from __future__ import annotations

from pathlib import Path

from spak.world import index
from spak.world.ask import Model
from spak.world.index import Report, update
from spak.world.store import Store
from spak.world.worker import Parsed, facts_of


class InProcess:
    """Parses here, without a process of its own: for tests that are about something else."""

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *unused: object) -> None:
        pass

    def parse(self, language: str, data: bytes) -> Parsed | None:
        return facts_of(language, data)


class Code:
    """Files below a folder and the model of them in a store beside it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "code"
        self.root.mkdir()
        self.store = Store(folder / "world.sqlite")

    def put(self, files: dict[str, str | bytes | None]) -> None:
        """Write files; None removes one."""
        for name, text in files.items():
            path = self.root / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)

    def update(self) -> Report:
        return update(self.store, self.root)

    def model(self) -> Model:
        self.update()
        return Model(self.store, self.root)

    def edges(self, caller: str = "") -> set[str]:
        """`caller role callee how`, without the language; `init` edges left out."""
        rows = self.model().store.rows(
            "SELECT a.text, role, b.text, how FROM link JOIN name a ON a.id = caller"
            " JOIN name b ON b.id = callee JOIN tree ON tree.id = tree WHERE tree.root = ?",
            [str(self.root.resolve())],
        )
        shown = {f"{short(one)} {role} {short(two)} {how}" for one, role, two, how in rows if role != "init"}
        return {row for row in shown if row.startswith(caller)}

    def facts(self) -> dict[str, list[tuple[object, ...]]]:
        """All that the model says of the folder, without its own numbers and times."""
        root = [str(self.root.resolve())]
        where = "JOIN tree ON tree.id = {0}.tree AND tree.root = ?"
        queries = {
            "file": f"SELECT path, language, hash, test, reason, errors FROM file {where}",
            "symbol": "SELECT path, qual, kind, symbol.seen, line, end, sign FROM symbol"
            " JOIN file USING (content) " + where.format("file"),
            "link": "SELECT a.text, b.text, how, role, lines FROM link JOIN name a ON a.id = caller"
            f" JOIN name b ON b.id = callee {where}",
            "site": f"SELECT text, site.name, line FROM site JOIN name ON name.id = caller {where}",
            "dep": "SELECT file.path, coalesce(own.path, '/'), name FROM dep JOIN file ON file.id = dep.file"
            " LEFT JOIN file own ON own.id = target " + where.format("file"),
        }
        return {name: sorted(self.store.rows(sql.format(name), root)) for name, sql in queries.items()}


def short(symbol: str) -> str:
    return symbol.partition(":")[2]


def in_process(monkeypatch: object) -> None:
    """Let updates parse here."""
    monkeypatch.setattr(index, "Parsers", InProcess)  # type: ignore[attr-defined]
