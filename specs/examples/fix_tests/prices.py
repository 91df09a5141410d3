"""Prices of a shop, in cents."""


def total(items: list[tuple[int, int]], discount: int = 0) -> int:
    """What a basket of (price, pieces) costs, less a discount in percent, rounded to whole cents."""
    whole = sum(price * pieces for price, pieces in items)
    return whole - whole * discount
