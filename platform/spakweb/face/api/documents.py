"""Documents that the API gives: one class makes both the JSON and the schema.

A `Document` is a serializer whose members are read of a row: a member by the attribute of its name, by
`source`, or by the method `get_NAME(row)`. Requests are serializers of the framework and are read by
`View.given`. `listing` makes the document of a list. Nothing here asks the database or decides about rights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from django.urls import reverse
from rest_framework import serializers
from rest_framework.fields import get_attribute


class Document(serializers.Serializer):
    """A document that is given, of a row: an object, or a mapping."""

    @cached_property
    def members(self) -> list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]]:
        """Each member: its name, what reads it of a row, and what makes JSON of that."""
        return [
            (name, getattr(self, f"get_{name}", None) or _reader(field), field.to_representation)
            for name, field in self.fields.items()
        ]

    def to_representation(self, row: Any) -> dict[str, Any]:
        """The document of a row."""
        document = {}
        for name, read, represent in self.members:
            value = read(row)
            document[name] = None if value is None else represent(value)
        return document

    @classmethod
    def of(cls, request: Any, row: Any) -> dict[str, Any]:
        """The document of a row; addresses in it are whole ones, as `request` has them."""
        return cls(context={"request": request}).to_representation(row)


def _reader(field: serializers.Field) -> Callable[[Any], Any]:
    """What reads a member; of a plain dict without the detours of the framework, as lists have many rows."""
    if len(field.source_attrs) != 1:
        return field.get_attribute
    [name] = field.source_attrs
    return lambda row: row[name] if type(row) is dict else field.get_attribute(row)


class Moment(serializers.CharField):
    """A time, as ISO 8601."""

    def to_representation(self, value: Any) -> str:
        """A text is given as it is."""
        return value if isinstance(value, str) else str(value.isoformat())


class Address(serializers.CharField):
    """A whole address: that of a view, with the values of these attributes of the row as its parts."""

    def __init__(self, view: str, *parts: str, **more: Any) -> None:
        super().__init__(source="*", **more)
        self.view, self.parts = view, [part.split(".") for part in parts]

    def to_representation(self, value: Any) -> str:
        """The address of what a row is about."""
        path = reverse(self.view, args=[get_attribute(value, part) for part in self.parts])
        return str(self.context["request"].build_absolute_uri(path))


class Listing(Document):
    """A document that has rows of one kind, and the address of the next page where it has pages."""

    rows = ""

    @classmethod
    def of(cls, request: Any, row: Any) -> dict[str, Any]:
        """The document of rows, or of a `Page`."""
        many = row if isinstance(row, Page) else Page(row)
        page = {cls.rows: many.rows, "next": many.next}
        return super().of(request, page)


class With:
    """A row with members besides its own."""

    def __init__(self, row: Any, **more: Any) -> None:
        self.row = row
        self.__dict__.update(more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.row, name)


class Page:
    """Some rows, and the address of those after them."""

    def __init__(self, rows: Iterable[Any], next_: str | None = None) -> None:
        self.rows, self.next = rows, next_


def listing(
    name: str, row: type[Document], text: str, *, pages: bool = False, rows: str = ""
) -> type[Listing]:
    """The document of a list, called `name`: its member `rows`, else that of its name, has the rows."""
    more: dict[str, Any] = {"next": serializers.CharField(allow_null=True)} if pages else {}
    rows = rows or name.lower()
    members = {rows: row(many=True), "rows": rows, **more, "__doc__": text}
    return type(name, (Listing,), {**members, "__module__": row.__module__})
