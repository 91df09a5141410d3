"""Names for files and addresses, made from titles."""


def slug(title: str) -> str:
    """Lower case, words joined by single hyphens, nothing else."""
    return title.lower().replace(" ", "-")
