"""One page of the documentation: its Markdown as HTML for the platform, and its sections for the search.

Takes the text, the page's path below `docs/` and a function that says where a path of the project leads on
this platform. Gives a `Page`. Headings get the anchors that GitHub gives them; an entry of a list that begins
with a code of an error gets that code as its anchor. A link to what has no page here is shown as its text,
raw HTML is escaped, comments are left out. It reads no files and keeps nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token

Where = Callable[[str], str | None]
"""The address of a path of the project, such as `docs/runs.md`; None where there is no page of it."""

CODE = re.compile(r"[a-z]+\.[a-z][a-z0-9_]*")
KEY = re.compile(r"[A-Z][A-Z_]+")
_COMMENT = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")
_MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading or an entry, and the text below it; `level` is 1 for the page's own heading."""

    anchor: str
    title: str
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link of the page to another one: what it says, and the path it leads to."""

    title: str
    path: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page as HTML, its sections in their order, and its links to other pages of `docs/`."""

    title: str
    html: str
    sections: tuple[Section, ...]
    links: tuple[Link, ...]


def anchor_of(heading: str) -> str:
    """The anchor of a heading, from its Markdown, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def render(text: str, path: str, where: Where) -> Page:
    """The page at a path below the project, such as `docs/runs.md`."""
    tokens = _MARKDOWN.parse(text)
    sections: list[_Open] = [_Open("", "", 1)]
    links: list[Link] = []
    _prepare(tokens, sections, links, path, where)
    html = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    made = tuple(one.section() for one in sections if one.title)
    return Page(made[0].title if made else path, html, made, tuple(links))


class _Open:
    """A section whose text is still being read."""

    def __init__(self, anchor: str, title: str, level: int) -> None:
        self.anchor, self.title, self.level = anchor, title, level
        self.texts: list[str] = []

    def section(self) -> Section:
        return Section(self.anchor, self.title, self.level, " ".join(" ".join(self.texts).split()))


def _prepare(tokens: list[Token], sections: list[_Open], links: list[Link], path: str, where: Where) -> None:
    """Anchors, links and wrappers, written into the tokens."""
    headings = {
        anchor_of(token.content)
        for before, token in zip([None, *tokens], tokens, strict=False)
        if before is not None and before.type == "heading_open"
    }
    rows: set[str] = set()
    taken: dict[str, int] = {}
    tables = 0
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type in ("fence", "code_block"):
            sections[-1].texts.append(token.content)
            token.type, token.content = "html_block", _block(token)
        elif token.type == "html_block":
            token.content = _shown(token.content)
        elif token.type == "table_open":
            tables += 1
            label = f"Table {tables}, scrolls"
            token.type, token.tag, token.content = (
                "html_block",
                "",
                (
                    f'<div class="table-wrap card" tabindex="0" role="region" aria-label="{label}">'
                    '<table class="table">'
                ),
            )
        elif token.type == "table_close":
            token.type, token.tag, token.content = "html_block", "", "</table></div>\n"
        elif token.type == "inline":
            children = token.children or []
            if before is not None and before.type == "heading_open":
                anchor = anchor_of(token.content)
                count = taken[anchor] = taken.get(anchor, -1) + 1
                anchor = f"{anchor}-{count}" if count else anchor
                level = int(before.tag[1])
                before.attrSet("id", anchor)
                sections.append(_Open(anchor, _plain(children), level))
                token.children = [
                    *_linked(children, links, path, where),
                    *([_raw(_self_link(anchor, sections[-1].title))] if level > 1 else []),
                ]
            else:
                if before is not None and before.type == "td_open" and _key(children, rows | headings):
                    rows.add(children[0].content.lower())
                    children[0].attrSet("id", children[0].content.lower())
                if codes := _codes(children):
                    sections.append(_Open(codes[0], ", ".join(codes), 4))
                sections[-1].texts.append(_plain(children))
                token.children = list(_linked(children, links, path, where))


def _block(token: Token) -> str:
    """A block of code, which scrolls by itself."""
    word = token.info.split()[0] if token.info.split() else ""
    kind = f' class="language-{escape(word)}"' if word else ""
    return f'<pre class="code" tabindex="0"><code{kind}>{escape(token.content)}</code></pre>\n'


def _shown(html: str) -> str:
    return escape(_COMMENT.sub("", html))


def _self_link(anchor: str, title: str) -> str:
    label = f"Link to {escape(title)}"
    return f' <a class="anchor" href="#{escape(anchor)}" aria-label="{label}">#</a>'


def _raw(html: str) -> Token:
    return Token("html_inline", "", 0, content=html)


def _plain(tokens: list[Token]) -> str:
    """The text of inline tokens without what marks it up."""
    return "".join(
        " " if one.type in ("softbreak", "hardbreak") else one.content
        for one in tokens
        if one.type in ("text", "code_inline", "softbreak", "hardbreak")
    )


def _key(children: list[Token], taken: set[str]) -> bool:
    """Whether a cell is a setting of the language (`RETRIES`), whose first row becomes an anchor."""
    alone = len(children) == 1 and children[0].type == "code_inline"
    return alone and bool(KEY.fullmatch(children[0].content)) and children[0].content.lower() not in taken


def _codes(children: list[Token]) -> list[str]:
    """The codes with which an entry begins (`a.b`, `a.c`: ...), each of which becomes an anchor."""
    codes: list[Token] = []
    for one in children:
        if one.type == "code_inline" and CODE.fullmatch(one.content):
            codes.append(one)
        elif one.type == "text" and one.content.strip() == "," and codes:
            continue
        elif one.type == "text" and one.content.startswith(":") and codes:
            for code in codes:
                code.attrSet("id", code.content)
            return [code.content for code in codes]
        else:
            break
    return []


def _linked(children: list[Token], links: list[Link], path: str, where: Where) -> Iterator[Token]:
    """The tokens with links and images that lead somewhere on this platform."""
    kept: list[bool] = []
    for place, one in enumerate(children):
        if one.type == "html_inline":
            if not _COMMENT.fullmatch(one.content):
                yield Token("text", "", 0, content=one.content)
        elif one.type == "image":
            source = _address(str(one.attrGet("src")), path, where)
            yield _image(one, source) if source else Token("text", "", 0, content=one.content)
        elif one.type == "link_open":
            wanted = str(one.attrGet("href"))
            address = _address(wanted, path, where)
            kept.append(address is not None)
            if address is not None:
                one.attrSet("href", address)
                to = _project_path(wanted, path)
                if to.endswith(".md") and to != path:
                    end = next(i for i in range(place, len(children)) if children[i].type == "link_close")
                    links.append(Link(_plain(children[place:end]), to))
                yield one
        elif one.type == "link_close":
            if kept.pop():
                yield one
        else:
            yield one


def _image(token: Token, source: str) -> Token:
    words = escape(token.content)
    return _raw(f'<img src="{escape(source)}" alt="{words}" loading="lazy">')


def _project_path(target: str, path: str) -> str:
    """The path below the project that a relative link of a page leads to."""
    file = target.partition("#")[0]
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path


def _address(target: str, path: str, where: Where) -> str | None:
    if target.startswith("#") or _ELSEWHERE.match(target):
        return target
    _, mark, anchor = target.partition("#")
    found = where(_project_path(target, path))
    return None if found is None else f"{found}{mark}{anchor}"
