"""Small helpers for text on the web."""

import re


def slug(text, limit=40):
    """A text as part of an address: lower case, words joined by hyphens, at most `limit` characters."""
    joined = "-".join(_words(text.lower()))
    return joined[:limit].rstrip("-")


def wrap(text, width):
    """The words of a text in lines of at most `width` characters; a longer word has a line of its own."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _words(text):
    return re.findall(r"[a-z0-9]+", text)
