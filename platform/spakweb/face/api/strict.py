"""What of a request is refused before the framework reads it, which takes a number for a text and drops what
it does not know: `fits(serializer, data)`. A program would believe that it was understood.

Takes a serializer and what was sent; gives nothing, or raises what the reader is told. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework import serializers

from spakweb.ground.errors import Refused

HINT = "/api/ shows what is expected, /api/v1/schema/ is the schema."
KINDS: tuple[tuple[type[serializers.Field], tuple[type, ...], str], ...] = (
    (serializers.BooleanField, (bool,), "true or false"),
    (serializers.IntegerField, (int, float), "a whole number"),
    (serializers.CharField, (str,), "a text"),
)
"""Fields, the values that JSON has for them, and how they are called."""


def fits(serializer: serializers.Serializer, data: Any, *, typed: bool, place: str = "") -> None:
    """Members are known, also within others; where they are `typed`, as in JSON, of their kind.

    Raises: Refused `web.request`.
    """
    if not isinstance(data, Mapping):
        return  # the framework says what is expected
    if unknown := sorted(set(data) - set(serializer.fields)):
        where = f"{place}: there" if place else "There"
        known = f"Known: {', '.join(serializer.fields)}."
        raise Refused("web.request", f"{where} is no member {unknown[0][:60]!r}.", known, 422)
    for name, field in serializer.fields.items():
        if name in data:
            _fits(field, data[name], typed, f"{place}.{name}" if place else name)


def _fits(field: serializers.Field, value: Any, typed: bool, place: str) -> None:
    if isinstance(field, serializers.Serializer):
        fits(field, value, typed=typed, place=place)
    elif isinstance(field, serializers.ListSerializer | serializers.ListField):
        for one in value if isinstance(value, Sequence) and not isinstance(value, str) else ():
            _fits(field.child, one, typed, place)
    elif isinstance(field, serializers.DictField):
        for one in value.values() if isinstance(value, Mapping) else ():
            _fits(field.child, one, typed, place)
    elif typed and value is not None:
        _kind(field, value, place)


def _kind(field: serializers.Field, value: Any, place: str) -> None:
    for kind, types, words in KINDS:
        if not isinstance(field, kind):
            continue
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise Refused("web.request", f"{place}: this has to be {words}.", HINT, 422)
        return
