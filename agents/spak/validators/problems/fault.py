"""What a problem does wrong: a stable code and a sentence. It is never the candidate's fault."""

from __future__ import annotations


class ProblemFault(Exception):
    """`code` is one of `problem.*` in docs/errors.md."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
