"""Merkle trees: the published vectors of RFC 6962 trees, and the definition of RFC 9162 written out."""

from base64 import b64decode
from itertools import product

import pytest

from spak.ledger import merkle

# The known answers of transparency-dev/merkle (proof/verify_test.go and testdata): leaves, roots by size,
# inclusion (index, size, path) and consistency (old, size, path).
LEAVES = [
    bytes.fromhex(text)
    for text in (
        ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
    )
]
ROOTS = [
    bytes.fromhex(text)
    for text in (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    )
]
ONE_OF_EIGHT = (
    "lqKW0iTyhcZ77pPDD4owkVfw2qNdxbh+QQt4YwoJz8c=",
    "Xwg/ChozygdqlSeYMlgNs+DvRYS9/x9UyKNg9Q3jAx4=",
    "a0eq8p7jwq+a+Im8H7klTavTEXfxYjLdaqsDXKOb9uQ=",
)
SIX_OF_EIGHT = (
    "yoVOoSjtBQtBs1/8G4e46yveRh6eO1WW7Oa51ZdaCuA=",
    "037kGJdt2VdTwcc4Yrk5j6Kiz5tP8P3+izDNlSCWFLc=",
)
FIFTH = "vBoGQ7EuTS18d5GPROD095qDi2z57FtcKD4fTYhZnms="
INCLUSION = (
    (0, 8, ONE_OF_EIGHT),
    (5, 8, (FIFTH, *SIX_OF_EIGHT)),
    (2, 3, ("+sVCA+fMaWzw38tCySodnbr3CtnmIfS9jZhmLwDjwSU=",)),
    (1, 5, ("bjQLnP+zepicpUTmu3gKLHiQHT+zNzh2hRGjBhevoB0=", ONE_OF_EIGHT[1], FIFTH)),
)
CONSISTENCY = (
    (1, 8, ONE_OF_EIGHT),
    (6, 8, ("DrxdNDf74tsVi58Sah0RjjCBgQMdCpSfje3t68VY72o=", *SIX_OF_EIGHT)),
    (2, 5, (ONE_OF_EIGHT[1], FIFTH)),
)


def raw(path: tuple[str, ...]) -> list[bytes]:
    return [b64decode(one) for one in path]


def defined(data: list[bytes]) -> bytes:
    """The root as RFC 9162 section 2.1.1 defines it."""
    if len(data) < 2:
        return merkle.leaf_hash(data[0]) if data else merkle.EMPTY
    split = 1
    while split * 2 < len(data):
        split *= 2
    return merkle.node_hash(defined(data[:split]), defined(data[split:]))


@pytest.mark.parametrize("size", range(9))
def test_roots_are_the_published_ones(size: int) -> None:
    tree, frontier = merkle.Tree(LEAVES), merkle.Frontier()
    for data in LEAVES[:size]:
        frontier.append(data)
    assert merkle.root(size, tree.node) == frontier.root() == ROOTS[size] == defined(LEAVES[:size])


@pytest.mark.parametrize(("index", "size", "path"), INCLUSION)
def test_inclusion_proofs_are_the_published_ones(index: int, size: int, path: tuple[str, ...]) -> None:
    assert merkle.inclusion(index, size, merkle.Tree(LEAVES).node) == raw(path)
    assert merkle.check_inclusion(merkle.leaf_hash(LEAVES[index]), index, size, raw(path), ROOTS[size])


@pytest.mark.parametrize(("old", "size", "path"), CONSISTENCY)
def test_consistency_proofs_are_the_published_ones(old: int, size: int, path: tuple[str, ...]) -> None:
    assert merkle.consistency(old, size, merkle.Tree(LEAVES).node) == raw(path)
    assert merkle.check_consistency(old, size, ROOTS[old], ROOTS[size], raw(path))


def changed(path: list[bytes], more: list[bytes]) -> list[list[bytes]]:
    """The published ways to damage a proof: garbage before and after, a lost or a changed part."""
    damaged = [[*path, one] for one in (b"", *more)] + [[one, *path] for one in (b"", *more)]
    for at in range(len(path)):
        damaged.append(path[:at] + path[at + 1 :])
        damaged.append([*path[:at], bytes([path[at][0] ^ 8]) + path[at][1:], *path[at + 1 :]])
    return damaged


@pytest.mark.parametrize(("index", "size", "path"), INCLUSION)
def test_a_damaged_inclusion_proof_proves_nothing(index: int, size: int, path: tuple[str, ...]) -> None:
    leaf, root = merkle.leaf_hash(LEAVES[index]), ROOTS[size]
    for wrong in changed(raw(path), [root, merkle.EMPTY]):
        assert not merkle.check_inclusion(leaf, index, size, wrong, root)
    for other, count in ((index - 1, size), (index + 1, size), (index ^ 2, size), (index, size * 2)):
        assert not merkle.check_inclusion(leaf, other, count, raw(path), root)
    assert not merkle.check_inclusion(leaf, index, size // 2, raw(path), root)
    assert not merkle.check_inclusion(merkle.EMPTY, index, size, raw(path), root)
    assert not merkle.check_inclusion(leaf, index, size, raw(path), merkle.EMPTY)


@pytest.mark.parametrize(("old", "size", "path"), CONSISTENCY)
def test_a_damaged_consistency_proof_proves_nothing(old: int, size: int, path: tuple[str, ...]) -> None:
    before, after = ROOTS[old], ROOTS[size]
    for wrong in [*changed(raw(path), [before, after, raw(path)[0]]), []]:
        assert not merkle.check_consistency(old, size, before, after, wrong)
    for was, now in ((old - 1, size), (old + 1, size), (old ^ 2, size), (old, size * 2), (old, size // 2)):
        assert not merkle.check_consistency(was, now, before, after, raw(path))
    assert not merkle.check_consistency(old, size, after, before, raw(path))
    assert not merkle.check_consistency(old, size, merkle.EMPTY, after, raw(path))


def test_every_proof_of_every_size_up_to_33_holds_and_no_other() -> None:
    data = [b"%d" % number for number in range(33)]
    tree = merkle.Tree(data)
    roots = [defined(data[:size]) for size in range(len(data) + 1)]
    for size in range(len(data) + 1):
        assert merkle.root(size, tree.node) == roots[size]
        for index, place in product(range(size), range(size)):
            path = merkle.inclusion(index, size, tree.node)
            held = merkle.check_inclusion(merkle.leaf_hash(data[index]), place, size, path, roots[size])
            assert held == (place == index)
        for old, was in product(range(size + 1), range(size + 1)):
            path = merkle.consistency(old, size, tree.node)
            held = merkle.check_consistency(was, size, roots[old], roots[size], path)
            assert held == (was == old)


def test_what_is_not_in_the_tree_has_no_proof() -> None:
    tree = merkle.Tree(LEAVES)
    for index, size in ((0, 0), (8, 8), (-1, 3)):
        with pytest.raises(IndexError):
            merkle.inclusion(index, size, tree.node)
        assert not merkle.check_inclusion(merkle.EMPTY, index, size, [], merkle.EMPTY)
    with pytest.raises(IndexError):
        merkle.consistency(9, 8, tree.node)
    assert not merkle.check_consistency(9, 8, merkle.EMPTY, merkle.EMPTY, [])
