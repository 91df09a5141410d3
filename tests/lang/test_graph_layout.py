"""The drawing of any graph: nothing overlaps, lines end where they should, the same input gives the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spak.lang.graph import layers
from spak.lang.graph.arrange import Box, Link, Placed, arrange
from spak.lang.graph.measure import clean, shorten, width
from spak.lang.graph.order import crossings, untangle

Rectangle = tuple[float, float, float, float]
Pairs = list[tuple[int, int]]


def drawn(count: int, pairs: Pairs, wide: int = 120, tall: int = 50) -> Placed:
    """A drawing of boxes of one size that has been looked at."""
    boxes = [Box(wide, tall) for _ in range(count)]
    return looked_at(boxes, [Link(one, other, 40, 17) for one, other in dict.fromkeys(pairs) if one != other])


def looked_at(boxes: list[Box], links: list[Link]) -> Placed:
    placed = arrange(boxes, links)
    assert arrange(boxes, links) == placed
    assert len(placed.boxes) == len(boxes)
    assert len(placed.routes) == len(placed.labels) == len(links)
    bodies = [
        rectangle(centre, box.width, box.height) for centre, box in zip(placed.boxes, boxes, strict=True)
    ]
    claims = [
        (x, y + (box.height - max(box.height, box.tall)) / 2, x2 + box.loop_width, y2)
        for (x, y, x2, y2), box in zip(bodies, boxes, strict=True)
    ]
    labels = [
        rectangle(centre, link.width, link.height) for centre, link in zip(placed.labels, links, strict=True)
    ]
    for one, other in combinations([*claims, *labels], 2):
        assert not meet(one, other), (one, other)
    for x, y, x2, y2 in [*claims, *labels]:
        assert x >= 0 and y >= 0 and x2 <= placed.width and y2 <= placed.height
    for link, route in zip(links, placed.routes, strict=True):
        ends_at(bodies[link.source], route[0])
        ends_at(bodies[link.target], route[-1])
        for (x, y), (x2, y2) in pairwise(route):
            assert 0 <= min(x, x2) <= max(x, x2) <= placed.width
            assert 0 <= min(y, y2) <= max(y, y2) <= placed.height
            way = (min(x, x2), min(y, y2), max(x, x2), max(y, y2))
            assert not any(meet(way, body) for body in bodies), (link, route)
    return placed


def rectangle(centre: tuple[int, int], wide: int, tall: int) -> Rectangle:
    x, y = centre
    return x - wide / 2, y - tall // 2, x + wide / 2, y - tall // 2 + tall


def meet(one: Rectangle, other: Rectangle) -> bool:
    """Whether the insides have a point in common; a line counts as having an inside."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def ends_at(body: Rectangle, point: tuple[int, int]) -> None:
    assert point[1] in (body[1], body[3])
    assert body[0] < point[0] < body[2]


# ---- any graph -----------------------------------------------------------------------------------------

SIZES = st.integers(30, 160).map(lambda size: size * 2)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Box], list[Link]]:
    count = draw(st.integers(1, 14))
    loops = st.sampled_from([(0, 0), (60, 20), (90, 140)])
    boxes = [Box(draw(SIZES), draw(SIZES) // 4, *draw(loops)) for _ in range(count)]
    box = st.integers(0, count - 1)
    pairs = draw(st.lists(st.tuples(box, box), max_size=40, unique=True))
    return boxes, [
        Link(one, other, draw(st.integers(4, 60)) * 2, draw(st.integers(0, 60)))
        for one, other in pairs
        if one != other
    ]


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_nothing_overlaps_in_any_graph(graph: tuple[list[Box], list[Link]]) -> None:
    looked_at(*graph)


@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(0, 10))
def test_nor_where_long_links_take_lanes(graph: tuple[list[Box], list[Link]], room: int) -> None:
    with trunks_of(room):
        looked_at(*graph)


class trunks_of:
    """A drawing may have that many pieces of trunks: longer links go beside it."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __enter__(self) -> None:
        self.kept = layers.LIMIT, layers.FREE
        layers.LIMIT, layers.FREE = 0, self.room

    def __exit__(self, *error: object) -> None:
        layers.LIMIT, layers.FREE = self.kept


# ---- shapes --------------------------------------------------------------------------------------------


def chain(count: int) -> Pairs:
    return [(one, one + 1) for one in range(count - 1)]


def shapes() -> Iterator[object]:
    draw = random.Random(7)
    anywhere = [(draw.randrange(60), draw.randrange(60)) for _ in range(120)]
    yield pytest.param(0, [], id="empty")
    yield pytest.param(1, [], id="one")
    yield pytest.param(40, chain(40), id="chain")
    yield pytest.param(41, [(0, one) for one in range(1, 41)], id="star")
    yield pytest.param(41, [(one, 0) for one in range(1, 41)], id="star inwards")
    yield pytest.param(9, [(one, other) for one in range(9) for other in range(9)], id="complete")
    yield pytest.param(30, chain(30) + [(one, 0) for one in range(1, 30)], id="all back to the first")
    yield pytest.param(30, chain(30) + [(one, 29) for one in range(28)], id="all on to the last")
    yield pytest.param(30, chain(30) + [(one + 1, one) for one in range(29)], id="back and forth")
    yield pytest.param(60, anywhere, id="anywhere")
    yield pytest.param(50, [(one, one + 1) for one in range(0, 50, 2)], id="pairs apart")


@pytest.mark.parametrize(("count", "pairs"), list(shapes()))
def test_shapes(count: int, pairs: Pairs) -> None:
    drawn(count, pairs)
    with trunks_of(0):
        drawn(count, pairs)


def test_a_chain_stands_straight() -> None:
    placed = drawn(30, chain(30))
    assert len({x for x, _ in placed.boxes}) == 1
    assert all(len(route) == 2 for route in placed.routes)


def test_a_chain_with_ways_back_does_not_wander() -> None:
    placed = drawn(60, chain(60) + [(one, one - 3) for one in range(3, 60)])
    assert placed.width < 900
    with trunks_of(0):
        assert drawn(60, chain(60) + [(one, 0) for one in range(3, 60)]).width < 900


def test_the_points_stay_in_proportion_to_the_links() -> None:
    """Also where every link to one box could bend at every rank."""
    for count, pairs in (
        (1000, chain(1000) + [(one, 0) for one in range(2, 1000)]),
        (90, [(one, other) for one in range(90) for other in range(90) if one != other]),
    ):
        placed = arrange([Box(120, 50)] * count, [Link(one, other, 40, 17) for one, other in pairs])
        assert sum(map(len, placed.routes)) < 30 * len(pairs)


def test_links_to_one_box_share_their_way() -> None:
    """Forty tasks that fail to one are one line with forty feeders."""
    placed = drawn(40, chain(40) + [(one, 0) for one in range(2, 40)])
    uprights = {route[-3][0] for route in placed.routes[40:]}
    assert len(uprights) == 1


def test_a_tree_has_no_crossing() -> None:
    links = [Link((one - 1) // 3, one, 40, 17) for one in range(1, 40)]
    made = layers.skeleton([Box(80, 40)] * 40, links)
    untangle(made)
    place = {item: at for layer in made.layers for at, item in enumerate(layer)}
    assert crossings(made, [place[item] for item in range(len(made.layer))]) == 0


def test_sweeps_take_crossings_away() -> None:
    pairs = [(0, one) for one in range(1, 7)] + [(one, 13 - one) for one in range(1, 7)]
    made = layers.skeleton([Box(80, 40)] * 13, [Link(one, other, 40, 17) for one, other in pairs])
    for layer in made.layers:
        layer.sort()
    place = [0] * len(made.layer)
    for layer in made.layers:
        for at, item in enumerate(layer):
            place[item] = at
    before = crossings(made, place)
    untangle(made)
    for layer in made.layers:
        for at, item in enumerate(layer):
            place[item] = at
    assert before > 0
    assert crossings(made, place) == 0


def test_ranks_follow_the_links_that_are_not_turned() -> None:
    draw = random.Random(3)
    links = [Link(one, other) for one in range(50) for other in draw.sample(range(50), 3) if one != other]
    back = layers.turned(50, links)
    ranks = layers.ranked(50, links, back)
    assert any(back)
    assert ranks[0] == 0
    for link, turn in zip(links, back, strict=True):
        upper, lower = (link.target, link.source) if turn else (link.source, link.target)
        assert ranks[upper] < ranks[lower]


@pytest.mark.parametrize(
    "pairs",
    [
        chain(2000),
        [(0, one) for one in range(1, 2000)],
        chain(2000) + [(one, 0) for one in range(1, 2000)],
        chain(2000) + [(one, one * 7 % 2000) for one in range(2000)],
    ],
    ids=["chain", "star", "all back", "scattered"],
)
def test_two_thousand_boxes(pairs: Pairs) -> None:
    boxes = [Box(120, 50)] * 2000
    placed = arrange(boxes, [Link(one, other, 40, 17) for one, other in pairs if one != other])
    spots = sorted((y, x) for x, y in placed.boxes)
    assert all(y2 > y or x2 - x >= 120 for (y, x), (y2, x2) in pairwise(spots))


# ---- texts ---------------------------------------------------------------------------------------------


def test_what_can_not_be_seen_is_shown_as_such() -> None:
    assert clean("plain_name") == "plain_name"
    assert clean("a\u202eb\u200bc\x1bd") == "a\ufffdb\ufffdc\ufffdd"
    assert clean("a\tb\nc") == "a b c"
    assert clean("z" + "\u0335" * 40) == "z" + "\u0335" * 2
    assert clean("日本語 שלום") == "日本語 שלום"


def test_a_long_name_keeps_both_ends() -> None:
    assert shorten("short", 12) == "short"
    assert shorten("variant_of_the_kernel_17", 12) == "variant…l_17"
    assert len(shorten("x" * 500, 30)) == 30


def test_wide_letters_are_wide() -> None:
    assert width("", 13) <= 1
    assert width("aaaa", 13) == 33
    assert width("日本", 10) >= 20
    assert width("a\u0301", 10) == width("á", 10) or width("a\u0301", 10) <= 2 * width("a", 10)
