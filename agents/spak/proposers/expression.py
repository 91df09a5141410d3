"""Requirements of a parameter space: a small expression language with its own evaluator.

Takes text such as `TILE % (WIDTH * 2) == 0 or LAYOUT == 'DOT'` and the names it may use; gives a
`Requirement` that answers yes or no for a point. Numbers, strings, names, `+ - * // %`, comparisons, `in` a
list, `and`, `or`, `not` and parentheses are all there is: Python's parser reads the text, and every node that
is not on the list is refused before anything is computed. Text, nodes and numbers are bounded; nothing is
ever executed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spak.errors import UsageError

MAX_TEXT = 500
MAX_NODES = 200
LIMIT = 2**64
"""What numbers stay below."""

Number = int | float
Scalar = bool | int | float | str
_Value = Scalar | tuple[Scalar, ...]
_Function = Callable[[Mapping[str, Scalar]], _Value]

_ARITHMETIC: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_ORDER: Mapping[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_HINT = "use numbers, strings, parameter names, + - * // %, comparisons, in [...], and, or, not, parentheses"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition on the parameters of a point."""

    text: str
    names: frozenset[str]
    _function: _Function

    def holds(self, point: Mapping[str, Scalar]) -> bool:
        """Whether the point meets it.

        Raises: UsageError `tuner.space` when it cannot be computed there: a division by zero, a string where
        a number is wanted, a number out of range, or a result that is neither true nor false.
        """
        result = self._function(point)
        if isinstance(result, bool):
            return result
        raise _error(self.text, f"gives {result!r}, which is neither true nor false")


def requirement(text: str, names: frozenset[str]) -> Requirement:
    """The requirement that the text states about these parameters.

    Raises: UsageError `tuner.space`.
    """
    if len(text) > MAX_TEXT:
        raise _error(text[:60] + "...", f"is longer than {MAX_TEXT} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _error(text, "is not an expression") from error
    nodes = list(ast.walk(tree))
    if len(nodes) > MAX_NODES:
        raise _error(text, f"has more than {MAX_NODES} parts")
    used = frozenset(node.id for node in nodes if isinstance(node, ast.Name))
    unknown = sorted(used - names)
    if unknown:
        raise _error(text, f"names {unknown[0]}, which is no parameter")
    return Requirement(text, used, _build(text, tree))


def _build(text: str, node: ast.expr) -> _Function:
    match node:
        case ast.Constant(value=int() | float() | str() as value) if not isinstance(value, bool):
            return lambda point: value
        case ast.Name(id=name):
            return lambda point: point[name]
        case ast.Tuple(elts=items) | ast.List(elts=items):
            parts = [_build(text, item) for item in items]
            return lambda point: tuple(_scalar(text, part(point)) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _negation(text, _build(text, inner))
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            number = _build(text, inner)
            return lambda point: -_number(text, number(point))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _arithmetic(text, _ARITHMETIC[type(op)], _build(text, left), _build(text, right))
        case ast.BoolOp(op=op, values=values):
            return _boolean(text, isinstance(op, ast.And), [_build(text, value) for value in values])
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _comparison(text, [_build(text, item) for item in (left, *others)], ops)
        case _:
            raise _error(text, f"holds something that is not allowed ({type(node).__name__})")


def _negation(text: str, inner: _Function) -> _Function:
    return lambda point: not _truth(text, inner(point))


def _boolean(text: str, every: bool, parts: list[_Function]) -> _Function:
    combine = all if every else any
    return lambda point: combine(_truth(text, part(point)) for part in parts)


def _arithmetic(
    text: str, apply: Callable[[Number, Number], Number], left: _Function, right: _Function
) -> _Function:
    def compute(point: Mapping[str, Scalar]) -> _Value:
        a, b = _number(text, left(point)), _number(text, right(point))
        try:
            return _number(text, apply(a, b))
        except ZeroDivisionError as error:
            raise _error(text, "divides by zero") from error

    return compute


def _comparison(text: str, parts: list[_Function], ops: list[ast.cmpop]) -> _Function:
    def compute(point: Mapping[str, Scalar]) -> _Value:
        values = [part(point) for part in parts]
        return all(_compare(text, op, a, b) for op, a, b in zip(ops, values, values[1:], strict=False))

    return compute


def _compare(text: str, op: ast.cmpop, left: _Value, right: _Value) -> bool:
    match op:
        case ast.In() | ast.NotIn():
            if not isinstance(right, tuple):
                raise _error(text, "has `in` without a list at its right")
            return (_scalar(text, left) in right) == isinstance(op, ast.In)
        case ast.Eq():
            return _scalar(text, left) == _scalar(text, right)
        case ast.NotEq():
            return _scalar(text, left) != _scalar(text, right)
        case _ if type(op) in _ORDER:
            return _ORDER[type(op)](_number(text, left), _number(text, right))
        case _:
            raise _error(text, f"holds something that is not allowed ({type(op).__name__})")


def _number(text: str, value: _Value) -> Number:
    if isinstance(value, bool | str | tuple):
        raise _error(text, f"computes with {value!r}, which is not a number")
    if not abs(value) < LIMIT:
        raise _error(text, "computes a number that is out of range")
    return value


def _scalar(text: str, value: _Value) -> Scalar:
    if isinstance(value, tuple):
        raise _error(text, "compares a list")
    return value


def _truth(text: str, value: _Value) -> bool:
    if not isinstance(value, bool):
        raise _error(text, f"uses {value!r} as true or false")
    return value


def _error(text: str, problem: str) -> UsageError:
    return UsageError("tuner.space", f"the requirement `{text}` {problem}", _HINT)
