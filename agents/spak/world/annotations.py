"""What an annotation says, apart from what its names mean: the same small shape for every language.

Takes the text of an annotation in Python's form (extractors of other languages write it so); gives a Note:

    ("name", chain)  ("any", notes)  ("many", one, item or None)  ("tuple", notes)  ("type", note)
    ("call", note)   ("self",)

Nothing is looked up. A text that is not an annotation says nothing: `("any", ())`.
"""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache
from typing import Any

Note = tuple[Any, ...]
NOTHING: Note = ("any", ())
_MANY = frozenset(
    [
        *("list", "set", "frozenset", "deque", "Sequence", "Iterable", "Iterator", "Collection", "Set"),
        *("FrozenSet", "List", "Deque", "MutableSequence", "AsyncIterator", "AsyncIterable", "Generator"),
        *("AsyncGenerator", "KeysView", "ValuesView", "AbstractSet", "MutableSet", "Container", "Reversible"),
    ]
)
_MAPPINGS = frozenset(
    ["dict", "Mapping", "MutableMapping", "Dict", "defaultdict", "OrderedDict", "DefaultDict"]
)
_SAME = frozenset(
    ["Optional", "Annotated", "ClassVar", "Final", "Awaitable", "Required", "NotRequired", "InitVar"]
)
_LAST = frozenset(["Coroutine"])
_WITH = frozenset(
    ["AbstractContextManager", "AbstractAsyncContextManager", "ContextManager", "AsyncContextManager"]
)


@lru_cache(20_000)
def note(text: str) -> Note:
    """The Note of an annotation's text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _note(ast.parse(text.strip(), mode="eval").body, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return NOTHING


def _note(node: ast.expr, depth: int) -> Note:
    if depth > 20:
        return NOTHING
    match node:
        case ast.Constant(value=str(text)):
            return note(text) if len(text) < 2000 else NOTHING
        case ast.Name(id="Self") | ast.Attribute(attr="Self"):
            return ("self",)
        case ast.Name() | ast.Attribute():
            chain = _chain(node)
            return ("name", chain) if chain else NOTHING
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return "any", (_note(left, depth + 1), _note(right, depth + 1))
        case ast.Subscript(value=value, slice=inner):
            return _generic(_chain(value), inner.elts if isinstance(inner, ast.Tuple) else [inner], depth + 1)
    return NOTHING


def _generic(chain: str, inner: list[ast.expr], depth: int) -> Note:
    name = chain.rpartition(".")[2]
    if not chain or not inner:
        return NOTHING
    if name in ("Union", "Literal"):
        return "any", tuple(_note(item, depth) for item in inner) if name == "Union" else ()
    if name in _SAME:
        return _note(inner[0], depth)
    if name in _LAST:
        return _note(inner[-1], depth)
    if name in _MANY or name in _WITH:
        return "many", _note(inner[0], depth), None
    if name in _MAPPINGS:
        return "many", _note(inner[0], depth), _note(inner[-1], depth)
    if name in ("tuple", "Tuple"):
        if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is ...:
            return "many", _note(inner[0], depth), None
        return "tuple", tuple(_note(item, depth) for item in inner)
    if name in ("type", "Type"):
        return "type", _note(inner[0], depth)
    if name == "Callable":
        return "call", _note(inner[-1], depth)
    return "name", chain


def _chain(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _chain(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""
