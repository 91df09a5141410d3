"""`spak keys`: private keys stay private, and what others could read is refused."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from cli_calls import Cli, Done
from spak import config
from spak.policy import approval

Keys = Callable[..., Done]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def keys(cli: Cli, home: Path) -> Keys:
    return lambda *args: cli("keys", *args, env={"XDG_CONFIG_HOME": str(home)})


def test_a_key_is_made_for_its_owner_alone(keys: Keys, home: Path, tmp_path: Path) -> None:
    done = keys("make", "alice", "--json")
    assert done.code == 0
    about = done.json
    file = Path(about["file"])
    assert file == home / "spak/keys/alice.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["alice.key"]
    assert about["id"] == approval.key_id(about["public"]) and about["roles"] == []
    body = "".join(file.read_text().splitlines()[1:-1])
    assert body[:20] not in done.out + done.err


def test_what_show_prints_is_what_spak_toml_takes(keys: Keys, tmp_path: Path) -> None:
    made = keys("make", "alice", "--json").json
    (tmp_path / "spak.toml").write_text(keys("show", "alice").out)
    listed = config.settings(tmp_path, {}).approvers
    assert listed == ({"id": made["id"], "name": "alice", "public": made["public"], "roles": ["approver"]},)
    assert keys("show", "alice", "--json").json["roles"] == ["approver"]
    assert "approver" in keys("list").out


def test_the_usual_name_is_the_login(keys: Keys) -> None:
    name = keys("make", "--json").json["name"]
    assert keys("show", "--json").json["name"] == name


def test_a_key_is_never_written_over(keys: Keys) -> None:
    first = keys("make", "alice", "--json").json
    again = keys("make", "alice", "--json")
    assert (again.code, again.error) == (2, "keys.exists")
    assert keys("show", "alice", "--json").json == first


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610])
def test_a_key_that_others_could_read_is_refused(keys: Keys, mode: int) -> None:
    file = Path(keys("make", "alice", "--json").json["file"])
    file.chmod(mode)
    done = keys("show", "alice", "--json")
    assert (done.code, done.error) == (2, "keys.mode")
    listed = keys("list", "--json")
    assert listed.code == 0 and listed.json["keys"][0]["error"]["code"] == "keys.mode"
    assert "keys.mode" in keys("list").out


def link(file: Path) -> None:
    file.rename(file.with_name("other"))
    file.symlink_to("other")


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def folder_instead(file: Path) -> None:
    file.unlink()
    file.mkdir(0o700)


@pytest.mark.parametrize("spoil", [link, pipe, folder_instead])
def test_a_key_is_a_plain_file(keys: Keys, spoil: Callable[[Path], None]) -> None:
    spoil(Path(keys("make", "alice", "--json").json["file"]))
    assert keys("show", "alice", "--json").error == "keys.mode"


def test_others_keys_are_refused(keys: Keys) -> None:
    file = Path(keys("make", "alice", "--json").json["file"])
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(file, 12345, 12345)
    assert keys("show", "alice", "--json").error == "keys.mode"


@pytest.mark.parametrize(
    "data", [b"", b"x" * 10_000, b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "rsa"]
)
def test_a_damaged_key_is_named_and_not_quoted(keys: Keys, data: bytes | str) -> None:
    file = Path(keys("make", "alice", "--json").json["file"])
    file.write_bytes(data if isinstance(data, bytes) else other_kind())
    done = keys("show", "alice", "--json")
    assert (done.code, done.error) == (2, "keys.damaged")
    assert "AAAA" not in done.out + done.err


def other_kind() -> bytes:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    key = X25519PrivateKey.generate()
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "-x", "ä", "a" * 65, "a\n"])
def test_names_are_plain_words(keys: Keys, home: Path, name: str) -> None:
    done = keys("make", "--json", "--", name)
    assert done.code == (0 if name == "" else 2)
    assert name == "" or done.error == "keys.name"
    assert not (home / "spak" / "x.key").exists()


def test_no_key_and_no_folder(keys: Keys) -> None:
    assert keys("list", "--json").json["keys"] == []
    assert "spak keys make" in keys("list").err
    assert keys("show", "nobody", "--json").error == "keys.missing"


def test_a_user_without_a_home(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    for words in (("make", "alice"), ("list",), ("show", "alice")):
        assert cli("keys", *words, "--json").error == "keys.missing"


def test_a_folder_that_cannot_be_written(keys: Keys, home: Path) -> None:
    home.write_text("a file")
    done = keys("make", "alice", "--json")
    assert (done.code, done.error) == (2, "usage.file")


def test_a_folder_that_others_write_in_is_refused(keys: Keys, home: Path) -> None:
    (home / "spak/keys").mkdir(parents=True)
    (home / "spak/keys").chmod(0o777)
    assert keys("make", "alice", "--json").error == "keys.mode"


A, B = (approval.encoded(bytes([byte]) * 32) for byte in (1, 2))


@pytest.mark.parametrize(
    "keys_text",
    [
        "3",
        "[3]",
        "[{name = 'a'}]",
        f"[{{name = 'a', public = '{A}', extra = 1}}]",
        f"[{{name = '', public = '{A}'}}]",
        f"[{{name = 3, public = '{A}'}}]",
        "[{name = 'a', public = 'short'}]",
        "[{name = 'a', public = 3}]",
        f"[{{name = 'a', public = '{A}='}}]",
        f"[{{name = 'a', public = '{A}', roles = []}}]",
        f"[{{name = 'a', public = '{A}', roles = ['king']}}]",
        f"[{{name = 'a', public = '{A}', roles = 'admin'}}]",
        f"[{{name = 'a', public = '{A}'}}, {{name = 'a', public = '{B}'}}]",
        f"[{{name = 'a', public = '{A}'}}, {{name = 'b', public = '{A}'}}]",
    ],
)
def test_a_list_of_approvers_that_is_none(cli: Cli, tmp_path: Path, keys_text: str) -> None:
    (tmp_path / "spak.toml").write_text(f"[approvals]\nkeys = {keys_text}\n")
    done = cli("runs", "--json")
    assert (done.code, done.error) == (2, "usage.config")
