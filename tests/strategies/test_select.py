"""The choice of a strategy: the seed's scenarios, every other case, and the law tried before its use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cli_kit import ROOT
from spak import config, data
from spak.datalog import PolicyError
from spak.errors import BugError, UsageError
from spak.lang import parse
from spak.lang.check import examine
from spak.lang.imports import resolve
from spak.lang.spec_files import folder_reader
from spak.policy.law import Law, compiled
from spak.runner.genesis import shipped as shipped_law
from spak.strategies import KINDS, Choice, Selector, Situation, look, manage_of, shipped
from spak.strategies.select import LAW
from spak.strategies.shipped import strategy
from spak.strategies.situation import UNKNOWN, situations

TEXT = data.path(LAW).read_text(encoding="utf-8")
TEST = "def test_a():\n    assert True\n"


@pytest.fixture(scope="module")
def selector() -> Selector:
    return Selector()


def asked(selector: Selector, folder: Path, verb: str, target: str = "") -> Choice:
    return selector.choose(look(folder, verb, selector.verbs[verb], target))


def named(choice: Choice) -> str:
    return choice.strategy.name if choice.strategy is not None else ""


def filled(folder: Path, count: int) -> Path:
    for number in range(count):
        (folder / f"m{number}.py").write_text("x = 1\n")
    return folder


# ---- scenarios of seed 004, 3.1 ----


def test_a_fix_with_a_file_of_tests_is_the_repair_loop(selector: Selector, tmp_path: Path) -> None:
    (filled(tmp_path, 1) / "test_a.py").write_text(TEST)
    for target in ("test_a.py", "test_a.py::test_a", "m0.py", ".", ""):
        choice = asked(selector, tmp_path, "fix", target)
        assert named(choice) == "tdd_repair" and choice.strategy is not None
        assert choice.strategy.alias == "tdd_repair_loop"
        assert choice.proof is not None and "file_topology(" in choice.proof.text()


def test_to_explore_more_than_a_hundred_files_is_a_survey(selector: Selector, tmp_path: Path) -> None:
    assert asked(selector, filled(tmp_path, 100), "explore").unmet == (
        "at most 100 files, which spak world map shows at once",
    )
    choice = asked(selector, filled(tmp_path, 101), "explore")
    assert named(choice) == "survey" and choice.strategy is not None
    assert choice.strategy.alias == "breadth_first_survey"


def test_to_scaffold_in_an_empty_project_begins_it(selector: Selector, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("[core]\n")
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    assert named(asked(selector, tmp_path, "scaffold", "shop")) == "project_init"
    assert asked(selector, filled(tmp_path, 1), "scaffold", "shop").unmet == (
        "the folder has files: a project is begun in an empty one",
    )


@pytest.mark.parametrize("verb", ["fix", "migrate"])
def test_to_fix_a_database_schema_is_a_migration_and_to_fix_a_file_is_not(
    selector: Selector, tmp_path: Path, verb: str
) -> None:
    (filled(tmp_path, 1) / "test_a.py").write_text(TEST)
    (tmp_path / "schema.sql").write_text("create table a (b int);\n")
    choice = asked(selector, tmp_path, verb, "schema.sql")
    assert named(choice) == "migrate" and choice.strategy is not None and choice.proof is not None
    assert choice.strategy.alias == "migration_generation_loop"
    assert 'target_kind("schema.sql", /schema)' in choice.proof.text()
    assert named(asked(selector, tmp_path, verb, "m0.py")) == ("tdd_repair" if verb == "fix" else "")


@pytest.mark.parametrize("path", ["shop/models.py", "shop/models/item.py", "manage.py"])
def test_to_migrate_the_models_of_a_django_project_is_a_migration_by_django(
    selector: Selector, tmp_path: Path, path: str
) -> None:
    for name in ("manage.py", "test_a.py", path):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert named(asked(selector, tmp_path, "migrate", path)) == "migrate_django"
    assert manage_of(tmp_path, path) == "manage.py"
    assert named(asked(selector, tmp_path, "fix", path)) == "tdd_repair"
    (tmp_path / "manage.py").unlink()
    assert manage_of(tmp_path, path) == ""


# ---- what nothing serves ----


@pytest.mark.parametrize(
    ("verb", "target", "reason"),
    [
        ("fix", "m0.py", "no file of tests"),
        ("explore", "tables.sql", "the target is of another kind"),
        ("fix", "nowhere.py", "the target is of another kind"),
        ("explore", "m0.py", "the target is of another kind"),
        ("refactor", "m0.py", "no strategy that ships serves this verb"),
        ("why", "m0.py", "no strategy that ships serves this verb"),
    ],
)
def test_what_nothing_serves_has_a_reason(
    selector: Selector, tmp_path: Path, verb: str, target: str, reason: str
) -> None:
    (filled(tmp_path, 1) / "tables.sql").write_text("create table a (b int);\n")
    choice = asked(selector, tmp_path, verb, target)
    assert choice.strategy is None and len(choice.unmet) == 1 and choice.unmet[0].startswith(reason)


def test_an_unknown_verb_and_a_guess_start_nothing(selector: Selector) -> None:
    unknown = Situation(UNKNOWN, UNKNOWN, "", "none", 0)
    assert selector.choose(unknown).unmet == ("this verb is not known",)
    guessed = TEXT.replace(
        "intent_voter(_, /typed, _)", "intent_voter(_, /model, _), intent_voter(_, /typed, _)"
    )
    with pytest.raises(PolicyError, match="neither a strategy nor a reason"):
        Selector(guessed.replace('unmet("nobody typed this request") :- !certain().', ""))


@pytest.mark.parametrize("target", ["../x.py", "/etc/passwd"])
def test_a_target_outside_of_the_folder(tmp_path: Path, target: str) -> None:
    with pytest.raises(UsageError) as caught:
        look(tmp_path, "fix", "mutation", target)
    assert caught.value.code == "ask.target"


def test_a_folder_of_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spak.strategies.folder.MOST", 2)
    with pytest.raises(UsageError) as caught:
        look(filled(tmp_path, 3), "fix", "mutation", "")
    assert caught.value.code == "ask.too_large"


# ---- the law is tried in every situation ----


def test_every_combination_has_one_strategy_or_a_reason(selector: Selector) -> None:
    tried = list(situations(selector.verbs.items(), {100}))
    assert {one.kind for one in tried} == set(KINDS)
    assert {one.verb for one in tried} == {*selector.verbs, UNKNOWN} and len(selector.verbs) == 23
    assert {99, 100, 101} <= {one.count for one in tried}
    for one in tried:
        choice = selector.choose(one)
        assert (choice.strategy is None) == bool(choice.unmet)


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        ("    Count > 100.", "    Count > 99.", "gives neither|chooses"),
        ("    Count > 100.", "    Count > 101.", "neither a strategy nor a reason at explore"),
        ("file_count(0).", "file_count(_).", None),
        ("    tested().\nunmet", "    tested().\nstrategy(/survey) :- fits(/tdd_repair).\nunmet", "survey"),
        ("strategy(/survey) :-", "strategy(/atlas) :-", "chooses atlas"),
        ("    fits(/survey),\n    file_count(Count),\n    Count > 100.", "    file_count(77777).", "survey"),
    ],
)
def test_a_law_that_does_not_choose_one_is_not_loaded(was: str, now: str, words: str | None) -> None:
    assert was in TEXT
    text = TEXT.replace(was, now, 1)
    if words is None or now.endswith("99."):
        Selector(text)  # a strategy with a reason against it is still one strategy
        return
    with pytest.raises(PolicyError, match=words) as caught:
        Selector(text)
    assert caught.value.code == "policy.strategy"


# ---- headers ----


@pytest.mark.parametrize(
    "text",
    [
        "// STRATEGY other\n// SERVES fix: none\n",
        "// STRATEGY a\n",
        "// SERVES fix: none\n",
        "// STRATEGY a\n// SERVES fix: house\n",
    ],
)
def test_a_header_that_is_none(text: str) -> None:
    with pytest.raises(BugError):
        strategy(Path("a.spak"), text)


def test_every_spec_of_the_folder_is_a_strategy_or_started_by_its_command() -> None:
    specs = {file.stem for file in (ROOT / "specs/strategies").glob("*.spak")}
    assert {one.name for one in shipped()} == specs - {"repair", "repair_answered"}
    assert {one.name for one in shipped()} == {
        "first_tests",
        "migrate",
        "migrate_django",
        "project_init",
        "survey",
        "tdd_repair",
    }


def test_a_query_is_served_by_a_spec_that_only_reads(selector: Selector) -> None:
    for one in shipped():
        made = examine(parse(one.file.read_text(encoding="utf-8"), one.file.name).spec, config.catalog())
        writes = any(tool.writes for task in made.tasks.values() for tool in task.all_tools.values())
        levels = selector.policy.session(()).query("verb", None, None, None, None)
        known = {str(verb)[1:]: (str(category)[1:], level) for verb, category, _, level in levels}
        assert made.level is not None
        for verb, _ in one.serves:
            category, least = known[verb]
            assert not (writes and category == "query") and made.level.value >= least


def test_a_pipe_and_an_odd_name_are_passed_over_as_files_of_tests(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "test_a.py")
    (tmp_path / "test_b\a.py").write_text("")
    (tmp_path / "test_c.py").write_text("")
    found = look(tmp_path, "fix", "mutation", "")
    assert [file.path for file in found.files] == ["test_c.py"]


def test_the_refactoring_guard_is_on_in_every_strategy() -> None:
    for one in shipped():
        whole = resolve(parse(one.file.read_text(encoding="utf-8"), one.file.name), folder_reader(one.file))
        session = compiled(shipped_law(), whole.policy, {}).session(())
        assert {"/refactor", "/symbols"} <= {str(name) for (name,) in session.query("guard", None)}, one.name


def test_a_guard_that_is_asked_for_takes_no_file_of_the_operator() -> None:
    law = Law({}, {"asked.mg": "own"})
    assert law.guarded(()) is law
    assert law.guarded(["a", "b"]).operator == {
        "asked.mg": "own",
        "also_asked.mg": "guard(/a).\nguard(/b).\n",
    }
