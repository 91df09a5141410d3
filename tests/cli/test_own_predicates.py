"""External predicates and backends of installed packages: asked in runs, recorded, needed by no replay."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import own_kit
from cli_calls import Cli, Done
from spak import config
from spak.datalog.externals import Request
from spak.errors import UserError
from spak.own import own
from spak.ports import Look, PredicateEntry
from spak.tools.observe import predicates

CODE = """
import sqlite3
from spak.lang.catalog import NamedEntry
from spak.ports import Answer, PredicateEntry


class Customer:
    entry = PredicateEntry("customer", 1, "Customers.", ("Id", "Plan"), ("+-",), max_rows=3, timeout_s=30)

    def rows(self, args, look):
        if args[0] == "broken.txt":
            raise RuntimeError("no table")
        if args[0] == "many.txt":
            return [("many.txt", f"plan{number}") for number in range(4)]
        file = sqlite3.connect("file:FILE?mode=ro", uri=True)
        return file.execute("select id, plan from customers where id = ?", (args[0],)).fetchall()


class Wrong(Customer):
    entry = PredicateEntry("wrong", 1, "Wrong.", ("Id",), ("+-",))


class Endless(Customer):
    entry = PredicateEntry("endless", 1, "Wrong.", ("Id",), ("+",), timeout_s=1e9)


class Entropy(Customer):
    entry = PredicateEntry("entropy", 1, "Taken.", ("Id",), ("+",))


class Parrot:
    entry = NamedEntry("parrot", "Says hello.")

    def check(self):
        return None

    def answer(self, prompt, on_text=None, cancel=None):
        return Answer("hello", {"input": 1, "output": 1}, "parrot")


class Manual(Parrot):
    entry = NamedEntry("manual", "Taken.")
"""
POINTS = "[spak.predicates]\ncustomer = acme_own:Customer\n[spak.backends]\nparrot = acme_own:Parrot\n"
LAW = """
Decl customer(Id, Plan) descr [external(), mode("+", "-")] bound [/string, /string].
paid(A) :- uses_path(A, /edits, _, Path), customer(Path, "paid").
forbidden(A) :- tool(A, /write_file), !paid(A).
"""
SPEC = """
TASK keep {
  step ask: llm.query { role: "coder" prompt_template: "Say hello." output_var: word }
  step put: tool.write_file { path: "NAME" content: "hello" }
}
"""


def install(folder: Path, points: str = POINTS, version: str = "1.2") -> None:
    code = CODE.replace("FILE", str(folder / "crm.db"))
    own_kit.install(folder, "acme-own", code, points, version)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "acme_own", raising=False)
    with sqlite3.connect(tmp_path / "crm.db") as file:
        file.execute("create table customers (id text, plan text)")
        file.executemany("insert into customers values (?, ?)", [("alice.txt", "paid"), ("bob.txt", "free")])
    file.close()
    (tmp_path / "law.mg").write_text(LAW)
    (tmp_path / "spak.toml").write_text('[tools]\npackages = ["acme-own"]\n[policy]\nlaw = ["law.mg"]\n')
    return tmp_path


def run(cli: Cli, folder: Path, name: str, *options: str) -> Done:
    (folder / "keep.spak").write_text(SPEC.replace("NAME", name))
    return cli("run", "keep.spak", "--json", *options, before=lambda: None)


def records(folder: Path, done: Done) -> list[Any]:
    lines = (folder / ".spak/runs" / done.json["run"] / "trace.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_law_asks_a_foreign_file_and_the_answer_is_recorded(cli: Cli, folder: Path) -> None:
    done = run(cli, folder, "alice.txt", "--backend", "parrot")
    assert done.code == 0, done.out
    genesis, *later = records(folder, done)
    assert genesis["body"]["host"]["own"] == {
        "backend parrot": "acme-own 1.2",
        "predicate customer": "acme-own 1.2",
    }
    seen = [record["body"]["facts"] for record in later if record["kind"] == "observe"]
    answered = [row for one in seen for row in one.get("rows", ())]
    assert [["customer", ["alice.txt", None]], [["alice.txt", "paid"]]] in answered
    shutil.rmtree(folder / "site")
    (folder / "crm.db").unlink()
    assert cli("replay", "latest", "--json").json["equal"] is True


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("bob.txt", "policy.forbidden"),
        ("nobody.txt", "policy.forbidden"),
        ("broken.txt", "world.failed"),
        ("many.txt", "world.too_large"),
    ],
)
def test_what_is_answered_or_fails_denies(cli: Cli, folder: Path, name: str, code: str) -> None:
    done = run(cli, folder, name, "--backend", "parrot")
    assert done.code == 5 and code in done.out, done.out


def test_a_run_goes_on_with_the_same_ones_only(cli: Cli, folder: Path) -> None:
    waiting = run(cli, folder, "alice.txt", "--backend", "manual")
    assert waiting.code == 4, waiting.out
    install(folder, version="1.3")
    lost = cli("resume", "--json", before=lambda: None)
    assert (lost.code, lost.error) == (7, "unavailable.predicate"), lost.out
    (folder / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
    gone = run(cli, folder, "alice.txt", "--backend", "manual")
    assert (gone.code, gone.error) == (7, "unavailable.predicate"), gone.out
    (folder / "spak.toml").write_text("")
    no_parrot = run(cli, folder, "alice.txt", "--backend", "parrot")
    assert (no_parrot.code, no_parrot.error) == (7, "unavailable.backend"), no_parrot.out


def test_a_mode_that_is_not_answered_is_unavailable(cli: Cli, folder: Path) -> None:
    law = (folder / "law.mg").read_text().replace('mode("+", "-")', 'mode("-", "-")')
    (folder / "law.mg").write_text(law)
    done = run(cli, folder, "alice.txt", "--backend", "manual")
    assert (done.code, done.error) == (7, "unavailable.predicate") and "(--)" in done.out, done.out


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        (POINTS, ""),
        ("[spak.predicates]\nwrong = acme_own:Wrong\n", "tool.package"),
        ("[spak.predicates]\nendless = acme_own:Endless\n", "tool.package"),
        ("[spak.predicates]\nparrot = acme_own:Parrot\n", "tool.package"),
        ("[spak.predicates]\nentropy = acme_own:Entropy\n", "tool.taken"),
        ("[spak.backends]\nparrots = acme_own:Parrot\n", "tool.package"),
        ("[spak.backends]\ncustomer = acme_own:Customer\n", "tool.package"),
        ("[spak.backends]\nmanual = acme_own:Manual\n", "tool.taken"),
    ],
)
def test_an_entry_point_can_be_used_or_has_a_code(folder: Path, points: str, wanted: str) -> None:
    install(folder, points)
    code = ""
    try:
        own(config.settings(folder, {}))
    except UserError as error:
        code = error.code
    assert code == wanted


class Given:
    """A predicate that gives what a test says."""

    def __init__(self, rows: Any, **entry: Any) -> None:
        self.entry = PredicateEntry("p", 1, "Rows.", ("X", "Y"), ("+-", "--"), **entry)
        self.given = rows

    def rows(self, args: Any, look: Look) -> Any:
        return self.given() if callable(self.given) else self.given


def _raises() -> Any:
    raise OSError(13, "Permission denied")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (Given([("a", 1, 2)]), "world.failed"),
        (Given(["ab"]), "world.failed"),
        (Given([("a", object())]), "policy.type"),
        (Given(None), "world.failed"),
        (Given(_raises), "world.unreadable"),
        (Given([("a", 1)] * 3, max_rows=2), "world.too_large"),
        (Given(lambda: __import__("threading").Event().wait(), timeout_s=0.05), "world.timeout"),
    ],
)
def test_no_answer_is_shorter_than_it_is(tmp_path: Path, given: Given, code: str) -> None:
    with pytest.raises(UserError) as caught:
        predicates.answers([Request("p", ("a", None))], Look(tmp_path), {"p": given})
    assert caught.value.code == code


def test_rows_that_do_not_fit_are_left_out(tmp_path: Path) -> None:
    given = Given([("a", 1), ("b", 2)])
    assert predicates.answers([Request("p", ("a", None))], Look(tmp_path), {"p": given}) == [[("a", 1)]]
    with pytest.raises(UserError) as caught:
        predicates.answers([Request("p", (None, 1))], Look(tmp_path), {"p": given})
    assert caught.value.code == "world.unknown"


PAGE = (Path(__file__).parents[2] / "docs/tools.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```\w+ file=(\S+)\n(.*?)```", PAGE, re.S))


@pytest.mark.parametrize(("target", "code"), [("alice", 0), ("bob", 5)])
def test_the_example_of_the_page(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, code: int
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with closing(sqlite3.connect(tmp_path / "crm.db")) as file:
        file.executescript(FILES["crm.sql"])
    points = "[spak.predicates]\ncustomer = acme_crm:Customer\n"
    site = own_kit.install(tmp_path, "acme-crm", FILES["acme_crm.py"], points)
    (tmp_path / "spak.toml").write_text(
        '[tools]\nfiles = ["tools/deploy.toml"]\npackages = ["acme-crm"]\n[policy]\nlaw = ["crm.mg"]\n'
    )
    (tmp_path / "release.spak").write_text(FILES["release.spak"].replace("staging", target))
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "acme_crm", raising=False)
    tried: dict[str, Any] = {}
    exec(FILES["test_acme_crm.py"], tried)
    tried["test_customer"]()
    done = cli("run", "release.spak", "--json", before=lambda: None)
    assert done.code == code, done.out
    trace = (tmp_path / ".spak/runs" / done.json["run"] / "trace.jsonl").read_text()
    assert ("deployed to alice" in trace) is (code == 0)
