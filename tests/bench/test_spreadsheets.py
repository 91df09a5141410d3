"""The spreadsheets benchmark: the sheets, the model's faults, and what each arm makes of the same ones.

Seeds 3 and 4 are pipelines of the chat loop in which a call is repeated without end, and in which a write
that broke off is taken for done.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.spreadsheets import figures
from bench.spreadsheets.figures import CHAT, COUNTING, OURS, PRUNED, ROLLED
from bench.spreadsheets.model import DONE, Model, Shown
from bench.spreadsheets.sheets import ENCODINGS, SEPARATORS, Sheet, cleaned, plant, sheets

LOOPING, BELIEVING = 3, 4
SMALL = Sheet("01_orders", "cp1252", ";", ("id", "net", "city", "paid"), ("id", "paid", "net"), "")


def test_the_reference_does_what_the_instruction_says() -> None:
    rows = ['7; 1.234,5 ;"a;b";03.02.2024', "", "7;1.234,5;x;03.02.2024", ";9,00;y;2024-01-01", "total;;;"]
    text = "\n".join(["id;net;city;paid", *rows, ""])
    assert cleaned(SMALL, text) == "id,paid,net\n7,2024-02-03,1234.50\n"
    assert (
        "out/01_orders.csv in UTF-8, separated by commas, with the columns id, paid, net" in SMALL.instruction
    )


def test_a_seed_makes_the_same_sheets_and_they_are_mixed(tmp_path: Path) -> None:
    made = sheets(1)
    assert made == sheets(1) != sheets(2) and len(made) == 20
    assert {sheet.encoding for sheet in made} == set(ENCODINGS)
    assert {sheet.separator for sheet in made} == set(SEPARATORS)
    widths = {len(sheet.columns) for sheet in made}
    assert max(widths) == 15 and min(widths) >= 5
    plant(made, tmp_path)
    for sheet in made:
        assert (tmp_path / sheet.source).read_bytes().decode(sheet.encoding) == sheet.text
        header, *rows = cleaned(sheet, sheet.text).splitlines()
        assert tuple(header.split(",")) == sheet.kept
        assert rows and len(set(rows)) == len(rows) and not any(" ," in row or ", " in row for row in rows)


def test_the_model_goes_by_what_it_is_shown() -> None:
    made = sheets(1)
    model = Model(1, made)
    model.draw = lambda kind, place: 0.99  # type: ignore[method-assign]  # no fault
    goal = Shown(made[4].instruction)
    assert made[4].source in model.say([goal])
    table = Shown(f"table {made[4].source}\n{made[4].text}")
    assert made[4].target in model.say([goal, table])
    assert model.say([goal, table, Shown(f"{made[4].target}: 100 bytes")]) == DONE


def test_what_a_loop_and_a_half_written_file_do_to_either_arm() -> None:
    looping, ours = figures.one(CHAT, LOOPING), figures.one(OURS, LOOPING)
    assert (looping.loop, looping.whole, looping.calls) == (True, False, 90)
    assert (ours.loop, ours.whole, ours.corrupted, ours.replayed) == (False, True, 0, True)
    counting = figures.one(COUNTING, LOOPING)
    assert (counting.loop, counting.whole) == (False, True)
    believing, rolled = figures.one(CHAT, BELIEVING), figures.one(ROLLED, BELIEVING)
    assert (believing.corrupted, believing.whole) == (1, False)
    assert (rolled.corrupted, rolled.whole) == (1, False)
    ours = figures.one(OURS, BELIEVING)
    assert (ours.corrupted, ours.whole) == (0, True)
    assert ours.firsts == believing.firsts and ours.first == believing.first, "the same faults in both arms"
    assert figures.one(PRUNED, BELIEVING).tokens > 2 * ours.tokens


def test_two_pipelines_of_a_seed_use_the_same_tokens() -> None:
    for arm in (CHAT, OURS):
        one, two = figures.one(arm, 2), figures.one(arm, 2)
        assert replace(one, seconds=0, cpu_s=0) == replace(two, seconds=0, cpu_s=0)
