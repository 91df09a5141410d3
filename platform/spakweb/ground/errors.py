"""What a person asked for and cannot have: a code `web.*`, a sentence, a hint, and the HTTP status.

docs/platform.md has a paragraph for each code.
"""

from __future__ import annotations

from spak.errors import UserError


class Refused(UserError):
    """Nothing was changed."""

    def __init__(self, code: str, message: str, hint: str = "", status: int = 400) -> None:
        super().__init__(code, message, hint)
        self.status = status

    @classmethod
    def of(cls, error: UserError, status: int = 409) -> Refused:
        """What the core refused, as a sentence."""
        return cls(error.code, f"{error.message[:1].upper()}{error.message[1:]}.", error.hint, status)

    def to_json(self) -> dict[str, str]:
        """Code, message and hint, as programs get them."""
        return {"code": self.code, "message": self.message, "hint": self.hint}
