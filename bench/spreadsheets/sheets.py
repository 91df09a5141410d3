"""Twenty CSV files with planted defects, what to do with each in plain words, and what has to come out.

Takes a seed; gives the same sheets for it everywhere. Encodings, separators and defects are mixed; a file has
5 to 15 columns and 8 to 16 rows. `cleaned` is the reference: the scripted model uses it on the text that it
is shown, the bench on the text that was generated.
"""

from __future__ import annotations

import csv
import io
import random
import re
from dataclasses import dataclass
from pathlib import Path

FILES = 20
ENCODINGS = ("utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16")
SEPARATORS = {";": "semicolons", ",": "commas", "\t": "tabs", "|": "vertical bars"}
SUBJECTS = ("orders", "invoices", "stock", "staff", "meters", "visits", "returns")
DATES = ("ordered", "shipped", "paid")
AMOUNTS = ("net", "tax", "gross", "freight")
TEXTS = ("customer", "city", "street", "article", "colour", "unit", "note")
WORDS = ("Müller", "Åse", "Café", "Núñez", "blue", "box", "Lyon", "Köln", "paper", "Straße", "large", "Zoë")


@dataclass(frozen=True, slots=True)
class Sheet:
    """One file to be cleaned."""

    name: str
    encoding: str
    separator: str
    columns: tuple[str, ...]
    kept: tuple[str, ...]
    """The columns that the result has, in this order."""
    text: str

    @property
    def source(self) -> str:
        """Where it is."""
        return f"in/{self.name}.csv"

    @property
    def target(self) -> str:
        """Where the result goes."""
        return f"out/{self.name}.csv"

    @property
    def instruction(self) -> str:
        """What to do, in plain words."""
        return (
            f"Read {self.source} ({self.encoding}, separated by {SEPARATORS[self.separator]}) and write "
            f"{self.target} in UTF-8, separated by commas, with the columns {', '.join(self.kept)} in this "
            "order. Leave out empty lines, rows without an id, repeated rows and the line of totals. Take "
            "spaces around cells away. Dates become YYYY-MM-DD, amounts get a point and two decimals."
        )


def sheets(seed: int, files: int = FILES) -> list[Sheet]:
    """The files of a seed."""
    chance = random.Random(f"sheets {seed}")
    return [_sheet(chance, number) for number in range(1, files + 1)]


def plant(made: list[Sheet], folder: Path) -> None:
    """Write the files below a folder, each in its encoding."""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for sheet in made:
        (folder / sheet.source).write_bytes(sheet.text.encode(sheet.encoding))


def cleaned(sheet: Sheet, text: str) -> str:
    """The result for the text of a file."""
    rows = list(csv.reader(io.StringIO(text), delimiter=sheet.separator))
    header = [cell.strip() for cell in rows[0]]
    done, seen = [list(sheet.kept)], set()
    for cells in rows[1:]:
        row = dict(zip(header, (cell.strip() for cell in cells), strict=False))
        if not row.get("id", "").isdigit():
            continue
        result = tuple(_value(name, row.get(name, "")) for name in sheet.kept)
        if result not in seen:
            seen.add(result)
            done.append(list(result))
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(done)
    return out.getvalue()


def _value(name: str, value: str) -> str:
    if name in DATES and (found := re.fullmatch(r"(\d\d)\.(\d\d)\.(\d{4})", value)):
        return f"{found[3]}-{found[2]}-{found[1]}"
    if name in AMOUNTS and value:
        return f"{float(value.replace('.', '').replace(',', '.')):.2f}"
    return value


def _sheet(chance: random.Random, number: int) -> Sheet:
    others = chance.sample([*DATES, *AMOUNTS, *TEXTS], chance.randint(4, 14))
    columns = ("id", *others)
    kept = ("id", *chance.sample(others, max(3, len(others) * 2 // 3)))
    separator = chance.choice(list(SEPARATORS))
    lines = [columns, *_rows(chance, columns)]
    text = "\n".join(separator.join(_quoted(cell, separator) for cell in line) for line in lines) + "\n"
    name = f"{number:02}_{chance.choice(SUBJECTS)}"
    return Sheet(name, ENCODINGS[number % len(ENCODINGS)], separator, columns, kept, text)


def _rows(chance: random.Random, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    rows = [
        tuple(_cell(chance, name, 100 + number) for name in columns)
        for number in range(chance.randint(7, 13))
    ]
    rows.insert(chance.randrange(len(rows)), chance.choice(rows))
    rows.insert(chance.randrange(len(rows)), ("", *chance.choice(rows)[1:]))
    rows.insert(chance.randrange(len(rows)), ())
    return [*rows, ("total", *("" for _ in columns[1:]))]


def _cell(chance: random.Random, name: str, number: int) -> str:
    if name == "id":
        return str(number)
    if name in DATES:
        day, month = chance.randint(1, 28), chance.randint(1, 12)
        return f"{day:02}.{month:02}.2024" if chance.random() < 0.7 else f"2024-{month:02}-{day:02}"
    if name in AMOUNTS:
        return f"{chance.randint(1, 9)}.{chance.randint(100, 999)},{chance.randint(10, 99)}"
    word = " ".join(chance.sample(WORDS, chance.randint(1, 2)))
    return f" {word} " if chance.random() < 0.3 else word


def _quoted(cell: str, separator: str) -> str:
    return f'"{cell}"' if separator in cell else cell
