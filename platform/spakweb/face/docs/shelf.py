"""The pages of the documentation that ships: which there are, what they say, and where words are found.

Reads `docs/` of the checkout or the wheel (`spak.data`) and keeps what it has rendered for as long as the
process lives: the files belong to the installed version. A page is asked for by its name, `runs` or
`adr/0050-the-api`; a name is looked up among the files that are there and is never made into a path.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.urls import reverse

from spak import data
from spakweb.face.docs import markdown

INDEX = "index"
MOST = 40
"""Results of a search that are shown."""
AROUND = 110
"""Characters shown before and after the first word that was found."""
IMAGES = {".svg": "image/svg+xml", ".png": "image/png"}


@dataclass(frozen=True, slots=True)
class Hit:
    """A section in which all words were found; `snippet` is text in pieces, each with whether it is a word
    that was searched for."""

    page: str
    url: str
    title: str
    snippet: tuple[tuple[str, bool], ...]


@cache
def names() -> Mapping[str, Path]:
    """The file of each page by its name."""
    root = data.path("docs")
    return {str(file.relative_to(root))[:-3]: file for file in sorted(root.rglob("*.md"))}


@cache
def images() -> Mapping[str, Path]:
    """The file of each image by its name."""
    return {file.name: file for file in data.path("docs/img").iterdir() if file.suffix in IMAGES}


def url_of(name: str) -> str:
    """The address of a page."""
    return reverse("spak-docs") if name == INDEX else reverse("spak-docs-page", args=[name])


def where(path: str) -> str | None:
    """The address of a path of the project; None where no page shows it."""
    folder, _, rest = path.partition("/")
    if folder != "docs":
        return None
    if rest == "openapi.yaml":
        return reverse("spak-explorer")
    if rest.endswith(".md") and rest[:-3] in names():
        return url_of(rest[:-3])
    kind, _, file = rest.partition("/")
    return reverse("spak-docs-image", args=[file]) if kind == "img" and file in images() else None


@cache
def page(name: str) -> markdown.Page:
    """The page of that name. Raises: KeyError when there is none."""
    return markdown.render(names()[name].read_text(encoding="utf-8"), f"docs/{name}.md", where)


@cache
def digest(name: str) -> str:
    """The hash of a page's text and of the index, which every page shows."""
    both = names()[name].read_bytes() + names()[INDEX].read_bytes()
    return hashlib.sha256(both).hexdigest()


def contents() -> Iterator[tuple[str, str]]:
    """The pages in the order of the index, each once: name and title."""
    links = {link.path: link.title for link in reversed(page(INDEX).links)}
    for path, title in reversed(links.items()):
        name = path.removeprefix("docs/").removesuffix(".md")
        if name in names():
            yield name, title


def search(words: str) -> list[Hit]:
    """The sections that have all the words, those with words in headings first."""
    wanted = list(dict.fromkeys(words.lower().split()))[:8]
    if not wanted:
        return []
    found: list[tuple[float, str, markdown.Section]] = []
    for name in names():
        for section in page(name).sections:
            title, text = section.title.lower(), section.text.lower()
            of_page = page(name).title.lower()
            here = [word in title or word in text for word in wanted]
            if any(here) and all(one or word in of_page for one, word in zip(here, wanted, strict=True)):
                found.append((_weight(wanted, title, text, of_page, section.level, name), name, section))
    found.sort(key=lambda one: -one[0])
    return [_hit(name, section, wanted) for _, name, section in found[:MOST]]


def _weight(wanted: list[str], title: str, text: str, of_page: str, level: int, name: str) -> float:
    weight = 10.0 if title == " ".join(wanted) else 0.0
    for word in wanted:
        weight += 4 * (word in title) + 2 * bool(re.search(rf"\b{re.escape(word)}", title))
        weight += 2 * (word in of_page) + min(text.count(word), 5) / 5
    return weight + (1 - level / 4) - 4 * name.startswith("adr/")


def _hit(name: str, section: markdown.Section, wanted: list[str]) -> Hit:
    anchor = f"#{section.anchor}" if section.level > 1 else ""
    text = section.text
    found = re.search("|".join(map(re.escape, wanted)), text, re.IGNORECASE)
    at = max(found.start() - AROUND, 0) if found else 0
    at = text.find(" ", at) + 1 if at else 0
    end = (found.end() if found else 0) + AROUND
    part = text[at:end] if end >= len(text) else text[at:end].rpartition(" ")[0]
    pieces = re.split(f"({'|'.join(map(re.escape, wanted))})", part, flags=re.IGNORECASE)
    snippet = [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]
    if at:
        snippet.insert(0, ("…", False))
    if at + len(part) < len(text):
        snippet.append(("…", False))
    return Hit(page(name).title, f"{url_of(name)}{anchor}", section.title, tuple(snippet))
