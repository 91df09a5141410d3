"""A workspace after a crash in the middle of a step: what is rolled back, what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from spak.errors import RunError
from spak.workspace import Workspace
from workspace.trees import fingerprint, remove, vandalise


class TestRecovery:
    def test_the_pending_effect_is_rolled_back(self, space: Workspace, folder: Path, tmp_path: Path) -> None:
        before = fingerprint(folder)
        root = space.begin("e1")
        vandalise(folder)
        again = Workspace(folder, tmp_path / "store")
        seen = again.pending()
        assert seen is not None and (seen.effect, seen.root) == ("e1", root)
        assert "src/a.c" in again.recover("e1", root)
        assert fingerprint(folder) == before and again.pending() is None
        assert again.recover("e1", root) == [] and again.begin("e1") == root

    @pytest.mark.parametrize("pending", [None, "e2"])
    def test_a_step_that_the_ledger_has_is_kept(
        self, space: Workspace, folder: Path, tmp_path: Path, pending: str | None
    ) -> None:
        space.begin("e1")
        vandalise(folder)
        root = space.commit()
        after = fingerprint(folder)
        again = Workspace(folder, tmp_path / "store")
        assert again.recover(pending, root) == [] and again.pending() is None
        assert fingerprint(folder) == after and again.snapshot() == root

    def test_beginning_over_a_half_done_step_is_refused(
        self, space: Workspace, folder: Path, tmp_path: Path
    ) -> None:
        space.begin("e1")
        with pytest.raises(RunError) as caught:
            Workspace(folder, tmp_path / "store").begin("e2")
        assert caught.value.code == "workspace.pending"

    @pytest.mark.parametrize("text", [b"{}", b"[1]", b"spak-pack 9\n", b"\x00" * 11 + b"\xff"])
    def test_a_store_that_is_none_is_a_typed_error(
        self, space: Workspace, tmp_path: Path, text: bytes
    ) -> None:
        root = space.begin("e1")
        (tmp_path / "store" / "pack").write_bytes(text)
        with pytest.raises(RunError) as caught:
            Workspace(space.directory, tmp_path / "store").recover("e1", root)
        assert caught.value.code == "workspace.object" and caught.value.hint
        assert (tmp_path / "store" / "pack").read_bytes() == text

    def test_a_record_of_another_format_is_a_typed_error(self, space: Workspace, tmp_path: Path) -> None:
        space.begin("e1")
        space._store.begin(b'e1\n{"format":9}')
        with pytest.raises(RunError) as caught:
            Workspace(space.directory, tmp_path / "store").recover("e1", "")
        assert caught.value.code == "workspace.pending" and caught.value.hint

    def test_a_folder_that_is_gone_comes_back(self, space: Workspace, folder: Path, tmp_path: Path) -> None:
        space.begin("e1")
        root = space.commit()
        space.settle()
        seen = {path: about[1:] for path, about in fingerprint(folder).items() if path != b"private"}
        remove(folder)
        again = Workspace(folder, tmp_path / "store")
        again.recover(None, root)
        now = {path: about[1:] for path, about in fingerprint(folder).items() if path != b"private"}
        assert now == seen and again.snapshot() == root

    @pytest.mark.parametrize("synced", [False, True])
    def test_a_damaged_store_changes_nothing_it_cannot_mend(
        self, space: Workspace, folder: Path, tmp_path: Path, synced: bool
    ) -> None:
        if synced:
            space.begin("e0")
            space.commit()
            space.settle()
        root = space.begin("e1")
        (folder / "private").write_bytes(b"changed")
        pack = tmp_path / "store" / "pack"
        whole = pack.read_bytes()
        pack.write_bytes(whole.replace(b"secret", b"forged"))
        again = Workspace(folder, tmp_path / "store")
        with pytest.raises(RunError) as caught:
            again.recover("e1", root)
        assert caught.value.code == "workspace.object"
        assert (folder / "private").read_bytes() == b"changed"
        assert not list(folder.glob(".spak*")) and again.pending() is not None
        pack.write_bytes(whole)
        Workspace(folder, tmp_path / "store").recover("e1", root)
        assert (folder / "private").read_bytes() == b"secret"

    def test_a_store_cut_short_cannot_undo_and_says_so(
        self, space: Workspace, folder: Path, tmp_path: Path
    ) -> None:
        root = space.begin("e1")
        (folder / "private").write_bytes(b"changed")
        pack = tmp_path / "store" / "pack"
        pack.write_bytes(pack.read_bytes().partition(b"secret")[0])
        again = Workspace(folder, tmp_path / "store")
        assert again.recover("e1", root) == [] and again.snapshot() != root
        with pytest.raises(RunError) as caught:
            again.restore(root)
        assert caught.value.code == "workspace.object"
        assert (folder / "private").read_bytes() == b"changed"
