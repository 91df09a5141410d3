"""Merkle trees of RFC 9162 (and RFC 6962): roots, inclusion and consistency proofs, and their verification.

Takes the data of leaves, or the hashes of perfect subtrees that a store keeps; gives hashes of 32 bytes and
lists of them. It is pure, and knows nothing of runs, of files or of signatures.

A leaf's hash is SHA-256(0x00 + data), that of a node SHA-256(0x01 + left + right). A tree of any size
consists of perfect subtrees, each addressed by (level, index): it has 2^level leaves, and `index` such
subtrees come before it. Their hashes never change while the tree grows, so that a store keeps them as they
are completed (`completed`) and later computes the root or a proof from some log2(size) of them (`root`,
`inclusion`, `consistency`, which take a function `node(level, index)`). `Tree` keeps them in memory.

Source: RFC 9162 sections 2.1.1 (hashes), 2.1.3 (inclusion), 2.1.4 (consistency).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

Node = Callable[[int, int], bytes]
"""The hash of the perfect subtree (level, index)."""

EMPTY = hashlib.sha256(b"").digest()
"""The root of a tree without leaves."""


def leaf_hash(data: bytes) -> bytes:
    """The hash of a leaf with this data."""
    return hashlib.sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of the node over two subtrees."""
    return hashlib.sha256(b"\1" + left + right).digest()


def completed(size: int, leaf: bytes, node: Node) -> list[bytes]:
    """The subtrees that a leaf with the hash `leaf` completes in a tree of `size` leaves, by level from 0 on.

    The one at level n is subtree (n, size >> n).
    """
    found = [leaf]
    while size & 1:
        found.append(node_hash(node(len(found) - 1, size - 1), found[-1]))
        size >>= 1
    return found


def position(level: int, index: int) -> int:
    """Where subtree (level, index) is among all subtrees, in the order in which leaves complete them."""
    leaf = ((index + 1) << level) - 1
    return 2 * leaf - leaf.bit_count() + level


def root(size: int, node: Node) -> bytes:
    """The root of the first `size` leaves."""
    return _range(0, size, node) if size else EMPTY


def inclusion(index: int, size: int, node: Node) -> list[bytes]:
    """The proof that leaf `index` is in the tree of the first `size` leaves. Raises: IndexError."""
    if not 0 <= index < size:
        raise IndexError(f"no leaf {index} in a tree of {size}")
    found, low, high = [], 0, size
    while high - low > 1:
        middle = low + _split(high - low)
        if index < middle:
            found.append(_range(middle, high, node))
            high = middle
        else:
            found.append(_range(low, middle, node))
            low = middle
    return found[::-1]


def consistency(old: int, size: int, node: Node) -> list[bytes]:
    """The proof that the tree of `size` leaves begins with that of `old` leaves. Raises: IndexError."""
    if not 0 <= old <= size:
        raise IndexError(f"a tree of {size} leaves does not begin with one of {old}")
    if old in (0, size):
        return []
    found, low, high, whole = [], 0, size, True
    while old < high:
        middle = low + _split(high - low)
        if old <= middle:
            found.append(_range(middle, high, node))
            high = middle
        else:
            found.append(_range(low, middle, node))
            low, whole = middle, False
    return ([] if whole else [_range(low, high, node)]) + found[::-1]


def check_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], wanted: bytes) -> bool:
    """True if `path` proves that the leaf hash `leaf` is at `index` in the tree with root `wanted`."""
    if not 0 <= index < size:
        return False
    place, last, found = index, size - 1, leaf
    for other in path:
        if last == 0:
            return False
        if place & 1 or place == last:
            found = node_hash(other, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = node_hash(found, other)
        place, last = place >> 1, last >> 1
    return last == 0 and found == wanted


def check_consistency(old: int, size: int, old_root: bytes, new_root: bytes, path: Sequence[bytes]) -> bool:
    """True if `path` proves that the tree with root `new_root` begins with the one with root `old_root`."""
    if not 0 <= old <= size:
        return False
    if old in (0, size):
        return not path and old_root == (new_root if old else EMPTY)
    whole = old & (old - 1) == 0
    rest = [old_root, *path] if whole else list(path)
    if not rest:
        return False
    place, last = old - 1, size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    was = now = rest[0]
    for other in rest[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            was, now = node_hash(other, was), node_hash(other, now)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            now = node_hash(now, other)
        place, last = place >> 1, last >> 1
    return last == 0 and was == old_root and now == new_root


class Frontier:
    """A tree that only grows, in memory for some log2(size) hashes."""

    def __init__(self) -> None:
        self.size = 0
        self._peaks: list[bytes] = []

    def append(self, data: bytes) -> None:
        """Add a leaf."""
        found, size = leaf_hash(data), self.size
        while size & 1:
            found = node_hash(self._peaks.pop(), found)
            size >>= 1
        self._peaks.append(found)
        self.size += 1

    def root(self) -> bytes:
        """The root of all leaves so far."""
        if not self._peaks:
            return EMPTY
        found = self._peaks[-1]
        for peak in self._peaks[-2::-1]:
            found = node_hash(peak, found)
        return found


class Tree:
    """A tree in memory: `nodes` has every perfect subtree, in the order in which leaves completed them."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self.size = 0
        self.nodes: list[bytes] = []
        for data in leaves:
            self.append(data)

    def append(self, data: bytes) -> list[bytes]:
        """Add a leaf; gives the subtrees that it completes."""
        found = completed(self.size, leaf_hash(data), self.node)
        self.nodes += found
        self.size += 1
        return found

    def node(self, level: int, index: int) -> bytes:
        """The hash of a perfect subtree."""
        return self.nodes[position(level, index)]


def _split(size: int) -> int:
    """The largest power of two below `size`, which is at least 2."""
    return 1 << (size - 1).bit_length() - 1


def _range(low: int, high: int, node: Node) -> bytes:
    """The hash over the leaves from `low` to before `high`, where RFC 9162 puts such a subtree."""
    size = high - low
    if size & (size - 1) == 0:
        level = size.bit_length() - 1
        return node(level, low >> level)
    middle = low + _split(size)
    return node_hash(_range(low, middle, node), _range(middle, high, node))
