"""What to hide from a job: the paths of files of secrets, those of a folder of secrets as one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from spak.secrets import which


def masks(paths: Iterable[str], permitted: Collection[str]) -> tuple[str, ...]:
    """What a job does not see: a folder of secrets as a whole, unless something in it is permitted."""
    found: dict[str, None] = {}
    for path in paths:
        parts = path.split("/")
        tops = ["/".join(parts[: at + 1]) for at in range(len(parts))]
        if not set(tops).isdisjoint(permitted):
            continue
        folder = next(
            (top for top, name in zip(tops, parts[:-1], strict=False) if which.secret_folder(name)), ""
        )
        whole = folder and not any(item.startswith(f"{folder}/") for item in permitted)
        found[folder if whole else path] = None
    return tuple(found)
