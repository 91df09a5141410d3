"""One checkpoint: cosigned by a witness that shares no code with the log, written to each kind of place."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import log_kit
from spak.errors import LedgerError
from spak.ledger.file_log import FileLog
from spak.ledger.files import FileLedgers
from spak.ledger.note import read, trusted, verifier
from spak.ledger.places import KINDS, place, shown
from spak.ledger.publish import Published, publish
from spak.ledger.witness import Witness
from witness_kit import NOW, Bucket, serving
from witness_kit import Witness as Watching


@pytest.fixture
def root(tmp_path: Path) -> Path:
    log_kit.store(tmp_path / "runs", runs=3)
    return tmp_path / "runs"


@pytest.fixture
def watching() -> Watching:
    found = Watching()
    found.knows(str(log_kit.KEY))
    return found


def published(root: Path, *places: str, witnesses: tuple[Witness, ...] = (), token: str = "") -> Published:
    log = FileLog(root)
    with log.held():
        log.update(FileLedgers(root))
        made = publish(
            log,
            log_kit.ORIGIN,
            log_kit.SEED,
            log.signed(),
            witnesses,
            [place(text, token) for text in places],
        )
        log.keep(made.note)
    return made


def git(folder: Path, *words: str) -> str:
    line = ["git", "-C", str(folder), *words]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


class TestWitness:
    def test_it_cosigns_each_checkpoint_that_continues_the_last(self, root: Path, watching: Watching) -> None:
        key = verifier(watching.key)
        with serving(watching) as url:
            for count in (7, 8, 9):
                made = published(root, witnesses=(Witness(f"{url}/w", key),))
                assert (made.witnesses, made.problems) == ((watching.name,), ())
                note, head = trusted(made.note.text().encode(), log_kit.KEY, (key,))
                assert note.signed_at(key) == NOW and watching.seen[log_kit.ORIGIN] == (head.size, head.root)
                log_kit.write(root, "r0", count)
            again = published(root, witnesses=(Witness(f"{url}/w/", key),))
            same = published(root, witnesses=(Witness(f"{url}/w", key),))
        assert again.note == same.note and again.problems == ()

    def test_its_own_size_is_taken_where_it_has_seen_another_checkpoint(
        self, root: Path, watching: Watching
    ) -> None:
        key = verifier(watching.key)
        with serving(watching) as url:
            published(root, witnesses=(Witness(f"{url}/w", key),))
            (root / ".log/checkpoint").unlink()  # we begin at 0, the witness is at 3
            log_kit.write(root, "r5", 2)
            made = published(root, witnesses=(Witness(f"{url}/w", key),))
        assert made.problems == () and [body.split("\n")[0] for body in watching.asked] == [
            "old 0",
            "old 0",
            "old 3",
        ]

    def test_an_old_copy_and_another_history_are_refused(
        self, root: Path, watching: Watching, tmp_path: Path
    ) -> None:
        key = verifier(watching.key)
        shutil.copytree(root, tmp_path / "old")
        with serving(watching) as url:
            witness = Witness(f"{url}/w", key)
            log_kit.write(root, "r4", 2)
            published(root, witnesses=(witness,))
            for count, runs in ((3, "r3"), (4, "r4"), (5, "r5")):  # less, as much, more than it has seen
                with pytest.raises(LedgerError) as caught:
                    published(tmp_path / "old", str(tmp_path / "places"), witnesses=(witness,))
                assert caught.value.code == "ledger.forked", count
                log_kit.write(tmp_path / "old", runs, 9)
        assert not (tmp_path / "places").exists()

    @pytest.mark.parametrize("what", ["away", "unknown log", "another key", "no signature", "not a name"])
    def test_one_that_does_not_sign_costs_its_signature_only(
        self, root: Path, watching: Watching, what: str, tmp_path: Path
    ) -> None:
        key = verifier(watching.key)
        if what == "unknown log":
            watching.logs.clear()
        elif what == "another key":
            key = verifier(Watching(seed=b"v" * 32).key)
        elif what == "no signature":
            watching.add_checkpoint = lambda body: (200, "signed, I promise\n")  # type: ignore[method-assign]
        with serving(watching) as url:
            address = {"away": "http://127.0.0.1:9", "not a name": "http://[::"}.get(what, f"{url}/w")
            made = published(root, str(tmp_path / "places"), witnesses=(Witness(address, key),))
        assert made.witnesses == () and len(made.problems) == 1 and made.places == (str(tmp_path / "places"),)
        assert read((tmp_path / "places/latest.checkpoint").read_bytes()) == made.note

    @pytest.mark.parametrize("size", ["²", "9" * 5000, "-1", "", "9" * 19])
    def test_a_size_that_is_none_is_no_answer(self, root: Path, size: str) -> None:
        watching = Watching()
        watching.add_checkpoint = lambda body: (409, size)  # type: ignore[method-assign]
        with serving(watching) as url, pytest.raises(LedgerError) as caught:
            published(root, witnesses=(Witness(f"{url}/w", verifier(watching.key)),))
        assert caught.value.code == "ledger.forked"

    def test_many_signatures_of_one_witness_leave_a_note_that_can_be_read(
        self, root: Path, watching: Watching
    ) -> None:
        once = watching.add_checkpoint

        def often(body: str) -> tuple[int, str]:
            status, text = once(body)
            return status, text * (64 if status == 200 else 1)

        watching.add_checkpoint = often  # type: ignore[method-assign]
        with serving(watching) as url:
            made = published(root, witnesses=(Witness(f"{url}/w", verifier(watching.key)),))
        assert made.problems == () and FileLog(root).signed() == made.note


class TestPlaces:
    def test_a_folder_gets_a_file_for_each_checkpoint(self, root: Path, tmp_path: Path) -> None:
        places = tmp_path / "mnt/evidence"
        first = published(root, str(places))
        log_kit.write(root, "r0", 9)
        second = published(root, str(places))
        published(root, str(places))
        names = {path.name: path.read_text() for path in places.iterdir()}
        assert names == {
            "000000000003.checkpoint": first.note.text(),
            "000000000004.checkpoint": second.note.text(),
            "latest.checkpoint": second.note.text(),
        }

    def test_a_git_remote_gets_a_commit_for_each_checkpoint(self, root: Path, tmp_path: Path) -> None:
        remote = tmp_path / "remote.git"
        git(tmp_path, "init", "--quiet", "--bare", str(remote))
        first = published(root, f"git+{remote}")
        log_kit.write(root, "r0", 9)
        second = published(root, f"git+{remote}")
        published(root, f"git+{remote}")  # nothing is new
        assert git(remote, "rev-list", "--count", "checkpoints").strip() == "2"
        assert git(remote, "show", "checkpoints:000000000003.checkpoint") == first.note.text()
        assert git(remote, "show", "checkpoints:latest.checkpoint") == second.note.text()

    @pytest.mark.parametrize("what", ["link", "folder"])
    def test_what_a_git_remote_has_under_the_name_of_a_checkpoint_leads_nowhere(
        self, root: Path, tmp_path: Path, what: str
    ) -> None:
        remote, other = tmp_path / "remote.git", tmp_path / "other"
        git(tmp_path, "init", "--quiet", "--bare", str(remote))
        published(root, f"git+{remote}")
        git(tmp_path, "clone", "--quiet", "--branch=checkpoints", str(remote), str(other))
        own, name = tmp_path / "own", other / "000000000004.checkpoint"
        own.write_text("mine")
        if what == "link":
            name.symlink_to(own)
        else:
            name.mkdir()
            (name / "file").write_text("")
        git(other, "add", ".")
        git(other, "-c", "user.name=x", "-c", "user.email=x@localhost", "commit", "--quiet", "--message=x")
        git(other, "push", "--quiet")
        log_kit.write(root, "r0", 9)
        made = published(root, f"git+{remote}")
        assert own.read_text() == "mine" and len(made.problems) == (1 if what == "folder" else 0)
        if what == "link":
            assert git(remote, "show", f"checkpoints:{name.name}") == made.note.text()

    def test_an_object_store_gets_an_object_for_each_checkpoint(self, root: Path) -> None:
        bucket = Bucket(token="t0ken")
        with serving(bucket=bucket) as url:
            made = published(root, f"{url}/bucket/?sig=s", token="t0ken")
            assert made.problems == () and made.places == (f"{url}/bucket/",)
            assert set(bucket.objects) == {
                "/bucket/000000000003.checkpoint?sig=s",
                "/bucket/latest.checkpoint?sig=s",
            }
            refused = published(root, f"{url}/bucket/?sig=s", token="other")
        assert refused.places == () and len(refused.problems) == 1 and "403" in refused.problems[0]

    def test_an_old_copy_is_not_signed_where_a_place_knows_better(self, root: Path, tmp_path: Path) -> None:
        remote = tmp_path / "remote.git"
        git(tmp_path, "init", "--quiet", "--bare", str(remote))
        shutil.copytree(root, tmp_path / "old")
        with serving(bucket=Bucket()) as url:
            places = [str(tmp_path / "folder"), f"git+{remote}", f"{url}/bucket"]
            log_kit.write(root, "r0", 9)
            published(root, *places)
            for text in places:
                with pytest.raises(LedgerError) as caught:
                    log_kit.write(tmp_path / "old", "r1", 9)
                    published(tmp_path / "old", text)
                assert caught.value.code == "ledger.forked"

    def test_one_that_fails_keeps_no_other_from_it(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        foreign = tmp_path / "foreign"
        foreign.mkdir()
        (foreign / "latest.checkpoint").write_text("something else")
        wrong = [
            str(tmp_path / "file/folder"),
            str(foreign),
            f"git+{tmp_path}/nowhere.git",
            "http://user:secret@127.0.0.1:9/bucket?sig=secret",
        ]
        made = published(root, *wrong, str(tmp_path / "good"))
        assert made.places == (str(tmp_path / "good"),) and len(made.problems) == len(wrong)
        assert "secret" not in " ".join(made.problems)
        assert "does not appear to be a git repository" in made.problems[2]
        assert (foreign / "latest.checkpoint").read_text() == "something else"

    def test_a_place_of_another_key_is_left_alone(self, root: Path, tmp_path: Path) -> None:
        published(root, str(tmp_path / "places"))
        log = FileLog(root)
        other = publish(log, log_kit.ORIGIN, b"o" * 32, None, (), [place(str(tmp_path / "places"))])
        assert other.places == () and "not signed with this key" in other.problems[0]

    def test_each_kind_is_told_from_the_others(self) -> None:
        texts = {"git": "git+https://u:p@h/r.git", "url": "https://u:p@h/b?sig=1", "folder": "/mnt/evidence"}
        assert {kind.name for kind in KINDS} == set(texts)
        for name, text in texts.items():
            assert place(text).kind.name == name
        assert shown(texts["git"]) == "git+https://h/r.git" and shown(texts["url"]) == "https://h/b"
