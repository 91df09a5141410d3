"""What a run changed goes out: as a patch, and as a branch that somebody approved, behind the barrier."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client

from jobs_kit import at_once
from sources_kit import Host, Repository, git
from spak.door import Change, Class, Leaving
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.store.runs.models import Run, RunRecord
from spakweb.store.sources.models import Branch, Source
from spakweb.work.sources import actions, branches, leaving
from spakweb.work.teams import tokens

RunFrom = Callable[..., Run]
TOKEN = "Zx9vQ2mLr7Tn4KpW8sYc3HdJ6fBg1Ae5"
UNCHECKED = 'task Write { step one: tool.write_file { path: "a" content: "x" } }\n'
FAILING = """\
task Write {
  step one: tool.write_file { path: "a" content: "x" }
  success: file_exists("b")
}
"""
LATE = """\
AGENT Late LEVEL 2 {
  START -> one
  TASK one { GOAL "Write."
    step a: tool.write_file { path: "README.md" content: "checked" }
    success: file_exists("README.md")
    NEXT { success -> two }
  }
  TASK two { GOAL "Write after the check."
    step b: tool.write_file { path: "README.md" content: "not checked" }
  }
}
"""
"""A file that is written after a clean check."""
CHANGES = """\
task Change {
  step new: tool.write_file { path: "hello.txt" content: "Hello" }
  step turn: tool.write_file { path: "README.md" content: "# Turned\\n" }
  success: file_exists("hello.txt")
}
"""
PLANTS = CHANGES.replace("hello.txt", "conftest.py")
"""It writes what a tool takes up by itself, which waits for a reviewer."""


@pytest.fixture
def changed(source: Source, repository: Repository, run_from: RunFrom) -> Run:
    """A run that changed the README and wrote a file, beside others that it left as they were."""
    inner = repository.tree({"deep.bin": bytes(range(256))})
    repository.commit({"README.md": b"# App\n", "lib": ("040000", inner)})
    run = run_from(text=CHANGES)
    assert run.state == "succeeded", run.reason
    return run


@pytest.fixture
def planted(source: Source, repository: Repository, run_from: RunFrom) -> Run:
    """A run that changed the README and wrote a `conftest.py`."""
    repository.commit({"README.md": b"# App\n"})
    run = run_from(text=PLANTS)
    assert run.state == "succeeded", run.reason
    return run


def pushed(row: Branch) -> Branch:
    at_once(branches.PUSH)
    row.refresh_from_db()
    return row


# ---- the patch


def test_the_patch_makes_of_the_files_before_the_files_after(
    cast: Any, changed: Run, repository: Repository, tmp_path: Path
) -> None:
    answer = cast.client("vera").get(f"/t/kernel-tuners/runs/{changed.key}/changes.patch")
    assert answer.status_code == 200
    assert answer["Content-Disposition"] == f'attachment; filename="{changed.key}.patch"'
    place = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository.folder), str(place))
    git(place, "apply", "--index", given=answer.content)
    assert (place / "README.md").read_text() == "# Turned\n"
    assert (place / "hello.txt").read_text() == "Hello"
    assert git(place, "diff", "--cached", "--name-only").split() == ["README.md", "hello.txt"]


def test_a_run_that_changed_nothing_has_an_empty_patch_and_no_branch(
    cast: Any, source: Source, repository: Repository, run_from: RunFrom
) -> None:
    repository.commit({"hello.txt": b"Hello"})
    run = run_from()
    assert cast.client("vera").get(f"/t/kernel-tuners/runs/{run.key}/changes.patch").content == b""
    with pytest.raises(Refused) as why:
        branches.ask(cast["rita"], run)
    assert why.value.code == "git.unchanged"


def test_a_file_of_secrets_does_not_go_out(
    cast: Any, source: Source, repository: Repository, run_from: RunFrom
) -> None:
    repository.commit({"a": b"a"})
    run = run_from(text=CHANGES.replace("hello.txt", "certs/server.pem"))
    if run.state != "succeeded":  # the law may refuse the write itself
        assert run.state in ("refused", "failed")
        return
    answer = cast.client("vera").get(f"/t/kernel-tuners/runs/{run.key}/changes.patch")
    assert (answer.status_code, b"door.secret" in answer.content) == (409, True)


def test_a_secret_in_a_page_does_not_go_out(
    cast: Any, source: Source, repository: Repository, run_from: RunFrom
) -> None:
    """By what is in it, whatever it is called: in a patch, and on a branch (F6)."""
    repository.commit({"README.md": b"# App\n"})
    run = run_from(text=CHANGES.replace("# Turned\\n", f"DB_PASSWORD={TOKEN}"))
    assert run.state == "succeeded", run.reason
    answer = cast.client("vera").get(f"/t/kernel-tuners/runs/{run.key}/changes.patch")
    assert (answer.status_code, b"door.secret" in answer.content) == (409, True)
    with pytest.raises(Refused) as why:
        branches.ask(cast["rita"], run, approve=True, signed=leaving.of(run).digest)
    assert why.value.code == "door.secret" and TOKEN not in str(why.value)
    page = cast.client("rita").get(f"/t/kernel-tuners/runs/{run.key}/?tab=workspace").content.decode()
    assert "it holds what looks like a secret" in page and "Push the branch" not in page


def test_what_would_run_by_itself_is_shown_and_signed_for(
    cast: Any, source: Source, repository: Repository, run_from: RunFrom
) -> None:
    """The approval binds the list that was shown: without it, or with another one, nothing goes out."""
    repository.commit({"README.md": b"# App\n"})
    run = run_from(text=CHANGES.replace("hello.txt", "conftest.py"))
    rita, place = cast.client("rita"), f"/t/kernel-tuners/runs/{run.key}/"
    patch = rita.get(f"{place}changes.patch").content
    assert patch.startswith(b"would run by itself, needs a signature (1)\n  A conftest.py  read by pytest")
    rows = [change.shown for change in branches.offered(cast["rita"], run)["leaving_rows"]]
    assert rows == ["conftest.py", "README.md"]
    row = branches.ask(cast["bob"], run)
    for signed in ("", "other"):
        rita.post(f"{place}branches/{row.pk}/decide/", {"decision": "approve", "signed": signed})
        row.refresh_from_db()
        assert row.state == "asked"
    page = rita.get(f"{place}?tab=workspace").content.decode()
    found = re.search('name="signed" value="([^"]+)"', page)
    assert found and "A conftest.py" in page and "read by pytest" in page
    rita.post(f"{place}branches/{row.pk}/decide/", {"decision": "approve", "signed": found[1]})
    row.refresh_from_db()
    assert (row.state, row.signed) == ("approved", found[1])
    Branch.objects.filter(pk=row.pk).update(signed="another list")
    assert pushed(row).error.startswith("door.unsigned")


def test_a_page_shows_every_path_that_is_signed_for() -> None:
    """However many lie before one: what is signed is what was shown."""
    kinds = [("b.md", Class.ORDINARY)] * 300 + [("ci.yml", Class.RUNS)] * 250
    found = [Change(f"{number}{name}", "A", of, "", None, None) for number, (name, of) in enumerate(kinds)]
    rows = leaving.rows(Leaving("", "", tuple(found)))
    assert [row.of for row in rows] == [Class.RUNS] * 250
    rows = leaving.rows(Leaving("", "", tuple(found[:310])))
    assert [row.of for row in rows] == [Class.RUNS] * 10 + [Class.ORDINARY] * 190


# ---- the branch


def test_a_reviewer_pushes_one_commit_upon_the_one_that_the_run_began_from(
    cast: Any, changed: Run, repository: Repository
) -> None:
    began = repository.head()
    repository.commit({"moved": b"on"}, parent=began)  # the branch is upon where the run began
    rita = cast.client("rita")
    page = rita.get(f"/t/kernel-tuners/runs/{changed.key}/?tab=workspace").content.decode()
    assert "Push the branch" in page
    form = {"name": f"spak/{changed.key}", "title": "Turn the README\nround"}
    assert rita.post(f"/t/kernel-tuners/runs/{changed.key}/branches/ask/", form).status_code == 302
    row = pushed(Branch.objects.get())
    assert (row.state, row.error, row.decided_by) == ("pushed", "", cast["rita"])
    ref = f"refs/heads/spak/{changed.key}"
    assert row.commit == repository.head(ref)
    assert git(repository.folder, "rev-parse", f"{ref}^") == began
    said = git(repository.folder, "log", "-1", "--format=%an|%s|%b", ref)
    assert said == f"SPAK|Turn the README round|Spak-Run: {changed.key}\nSpak-Head: {changed.head}"
    assert git(repository.folder, "show", f"{ref}:README.md") == "# Turned"
    names = git(repository.folder, "diff", "--name-only", f"{ref}^", ref).split()
    assert names == ["README.md", "hello.txt"]
    done = list(Event.objects.filter(action__startswith="source.branch").values_list("action", flat=True))
    assert sorted(done) == ["source.branch_approved", "source.branch_asked", "source.branch_pushed"]
    page = rita.get(f"/t/kernel-tuners/runs/{changed.key}/?tab=workspace").content.decode()
    assert row.commit[:12] in page


def test_ordinary_changes_and_tests_wait_for_nobody(
    cast: Any, source: Source, repository: Repository, run_from: RunFrom
) -> None:
    """Whoever may ask gets the branch, a person or a program; nobody's approval is recorded."""
    repository.commit({"README.md": b"# App\n", "tests": ("040000", repository.tree({"a.txt": b"a"}))})
    run = run_from(text=CHANGES.replace("hello.txt", "tests/test_app.py"))
    bob, place = cast.client("bob"), f"/t/kernel-tuners/runs/{run.key}/"
    assert "Push the branch" in bob.get(f"{place}?tab=workspace").content.decode()
    answer = bob.post(f"{place}branches/ask/", {"name": "spak/one"}, follow=True)
    assert "The branch is being pushed." in answer.content.decode()
    _, secret = tokens.make(cast["rita"], "ci", 7, None, ["start"])
    ci = Client(headers={"authorization": f"Bearer {secret}"})
    api = f"/api/v1/teams/kernel-tuners/runs/{run.key}/branches/"
    assert ci.post(api, json.dumps({"name": "spak/two"}), content_type="application/json").status_code == 201
    for row in Branch.objects.all():
        assert (row.state, row.decided_by, row.signed) == ("approved", None, "")
        assert (pushed(row).state, row.error) == ("pushed", "")
    heads = git(repository.folder, "for-each-ref", "--format=%(refname)").split()
    assert heads == ["refs/heads/main", "refs/heads/spak/one", "refs/heads/spak/two"]
    by = Event.objects.filter(action="source.branch_pushed").values_list("actor__username", flat=True)
    assert set(by) == {"bob", "rita"}
    assert "approved by" not in bob.get(f"{place}?tab=workspace").content.decode()


def test_tests_that_made_the_check_pass_wait(
    cast: Any, source: Source, repository: Repository, run_from: RunFrom, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"README.md": b"# App\n", "tests": ("040000", repository.tree({"a.txt": b"a"}))})
    run = run_from(text=CHANGES.replace("hello.txt", "tests/test_app.py"))
    monkeypatch.setattr(leaving, "_said", lambda key, count: ((), True))
    assert branches.ask(cast["bob"], run).state == "asked"
    assert "A reviewer approves it" in (
        cast.client("bob").get(f"/t/kernel-tuners/runs/{run.key}/?tab=workspace").content.decode()
    )


def test_an_editor_asks_and_a_reviewer_approves_or_declines(
    cast: Any, planted: Run, repository: Repository
) -> None:
    bob, place = cast.client("bob"), f"/t/kernel-tuners/runs/{planted.key}/branches/"
    for name in ("spak/one", "spak/two"):
        bob.post(f"{place}ask/", {"name": name})
    one, two = Branch.objects.order_by("pk")
    assert (one.state, pushed(one).state) == ("asked", "asked")  # nobody has approved it
    assert bob.post(f"{place}{one.pk}/decide/", {"decision": "approve"}).status_code == 403
    with pytest.raises(PermissionDenied):
        branches.decide(cast["bob"], one, yes=True)
    rita = cast.client("rita")
    for form in ({}, {"decision": "perhaps"}, {"do": "approve"}):
        assert rita.post(f"{place}{one.pk}/decide/", form).status_code == 400
    signed = leaving.by_law(planted).digest
    rita.post(f"{place}{one.pk}/decide/", {"decision": "approve", "signed": signed})
    rita.post(f"{place}{two.pk}/decide/", {"decision": "decline"})
    assert (pushed(one).state, pushed(two).state) == ("pushed", "declined")
    with pytest.raises(Refused) as why:
        branches.decide(cast["rita"], two, yes=True, signed=signed)
    assert why.value.code == "git.decided"
    heads = git(repository.folder, "for-each-ref", "--format=%(refname)").split()
    assert heads == ["refs/heads/main", "refs/heads/spak/one"]


def test_a_program_asks_and_never_approves(cast: Any, planted: Run) -> None:
    _, secret = tokens.make(cast["rita"], "ci", 7, None, ["start"])
    ci = Client(headers={"authorization": f"Bearer {secret}"})
    place = f"/api/v1/teams/kernel-tuners/runs/{planted.key}/branches/"
    made = ci.post(place, json.dumps({"title": "From CI"}), content_type="application/json")
    assert made.status_code == 201
    assert (made.json()["name"], made.json()["state"]) == (f"spak/{planted.key}", "asked")
    assert ci.get(place).json() == {"branches": [made.json()]}
    row = Branch.objects.get()
    answer = ci.post(
        f"/t/kernel-tuners/runs/{planted.key}/branches/{row.pk}/decide/", {"decision": "approve"}
    )
    assert answer.status_code == 403
    branches.decide(cast["rita"], row, yes=True, signed=leaving.by_law(planted).digest)
    assert pushed(row).state == "pushed"
    assert ci.get(place).json()["branches"][0]["commit"] == row.commit
    assert ci.get(f"/t/kernel-tuners/runs/{planted.key}/changes.patch").status_code == 200


@pytest.mark.parametrize(("text", "state"), [(UNCHECKED, "succeeded"), (FAILING, "failed")])
def test_only_a_checked_success_passes_the_barrier(
    cast: Any, source: Source, repository: Repository, run_from: RunFrom, text: str, state: str
) -> None:
    repository.commit({"README.md": b"# App\n"})
    run = run_from(text=text)
    assert run.state == state
    with pytest.raises(Refused) as why:
        branches.ask(cast["rita"], run, approve=True)
    assert why.value.code == "git.barrier"
    page = cast.client("rita").get(f"/t/kernel-tuners/runs/{run.key}/?tab=workspace").content.decode()
    assert why.value.message in page and "Push the branch" not in page
    assert not Branch.objects.exists()


def test_what_was_written_after_a_clean_check_does_not_go_out(
    cast: Any, source: Source, repository: Repository, run_from: RunFrom
) -> None:
    repository.commit({"README.md": b"# App\n"})
    run = run_from(text=LATE)
    assert run.state == "succeeded" and not run.unchecked
    with pytest.raises(Refused) as why:
        branches.ask(cast["rita"], run, approve=True, signed=leaving.of(run).digest)
    assert why.value.code == "door.blocked" and "No Check Ran" in why.value.message
    page = cast.client("rita").get(f"/t/kernel-tuners/runs/{run.key}/?tab=workspace").content.decode()
    assert "No Check Ran" in page and "Push the branch" not in page
    patch = cast.client("rita").get(f"/t/kernel-tuners/runs/{run.key}/changes.patch").content
    assert patch.startswith(b"may not leave as a commit: No Check Ran\n")


def test_a_run_of_no_source_and_of_one_that_was_removed(cast: Any, changed: Run) -> None:
    row = branches.ask(cast["bob"], changed)
    actions.remove(cast["alice"], Source.objects.get())
    with pytest.raises(Refused) as why:
        branches.decide(cast["rita"], row, yes=True)
    assert why.value.code == "git.barrier"


def test_records_that_do_not_prove_the_files_keep_them_in(cast: Any, changed: Run) -> None:
    """Somebody wrote another root into the row of the run: nothing of it leaves."""
    row = branches.ask(cast["rita"], changed, approve=True)
    first = RunRecord.objects.get(run=changed, seq=0)
    other = json.loads(bytes(first.line))["body"]["rules"]["r3"]
    Branch.objects.filter(pk=row.pk).update(root=other)
    assert pushed(row).error.startswith("git.unproven")


@pytest.mark.parametrize(
    "name", ["main", "release/1", "spak/../main", "spak/a b", "refs/heads/main", "spak/", "-x"]
)
def test_a_branch_has_a_place_of_its_own(cast: Any, changed: Run, name: str) -> None:
    with pytest.raises(Refused) as why:
        branches.ask(cast["rita"], changed, name)
    assert why.value.code in ("git.branch", "git.ref")


def test_no_branch_that_is_there_is_changed(cast: Any, changed: Run, repository: Repository) -> None:
    there = repository.commit({"other": b"o"}, "refs/heads/spak/mine")
    row = pushed(branches.ask(cast["rita"], changed, "spak/mine", approve=True))
    assert (row.state, row.error.split(":")[0]) == ("failed", "git.branch_taken")
    assert repository.head("refs/heads/spak/mine") == there
    with pytest.raises(Refused) as why:
        branches.ask(cast["rita"], changed, "spak/mine")
    assert why.value.code == "git.branch_taken"


def test_a_push_that_is_repeated_does_nothing(cast: Any, changed: Run, repository: Repository) -> None:
    row = pushed(branches.ask(cast["rita"], changed, approve=True))
    first = row.commit
    Branch.objects.filter(pk=row.pk).update(state="approved")  # its worker died at the end
    assert (pushed(row).state, row.commit) == ("pushed", first)


def test_what_a_repository_does_not_take(cast: Any, changed: Run, repository: Repository, host: Host) -> None:
    hook = repository.folder / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    hook.chmod(0o755)
    row = pushed(branches.ask(cast["rita"], changed, "spak/a", approve=True))
    assert row.error.startswith("git.push_refused")
    host.instead = lambda path: 403 if "receive-pack" in path else None
    row = pushed(branches.ask(cast["rita"], changed, "spak/b", approve=True))
    assert row.error.startswith("git.credentials")


def test_hooks_of_a_repository_on_the_disk_do_not_run_here(
    cast: Any, ground: None, repository: Repository, run_from: RunFrom, settings: Any, tmp_path: Path
) -> None:
    settings.SOURCE_FOLDERS = [str(tmp_path / "git")]
    actions.add(cast["alice"], cast.team, "disk", str(repository.folder), ["main"])
    repository.commit({"README.md": b"# App\n"})
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        hook = repository.folder / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
        hook.chmod(0o755)
    run = run_from(name="disk", text=CHANGES)
    row = pushed(branches.ask(cast["rita"], run, approve=True))
    assert (row.state, row.error) == ("pushed", "")
    assert not (tmp_path / "ran").exists()
