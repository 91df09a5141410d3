import csv
from datetime import date
from decimal import Decimal
from pathlib import Path


def rows():
    with Path("clean.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_columns_and_order():
    found = rows()
    assert list(found[0]) == ["id", "date", "customer", "amount"]
    assert [row["id"] for row in found] == ["1001", "1002", "1003", "2001", "2002", "2003"]


def test_dates_are_iso_and_keep_their_day():
    found = {row["id"]: date.fromisoformat(row["date"]) for row in rows()}
    assert found["1003"] == date(2026, 3, 5)
    assert found["2001"] == date(2026, 3, 4)
    assert found["2002"] == date(2025, 12, 31)


def test_amounts():
    found = {row["id"]: row["amount"] for row in rows()}
    assert found["1001"] == "85.00", "the later line of an order counts"
    assert sum(map(Decimal, found.values())) == Decimal("2627.40")


def test_customers_are_trimmed_and_whole():
    found = {row["id"]: row["customer"] for row in rows()}
    assert found["1002"] == "Núñez"
    assert found["1003"] == "Bäcker; Söhne"
    assert found["2001"] == "Smith, J."
