"""Repositories that are gone, moved, huge, slow, or made to do harm: each a code, nothing half begun."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sources_kit import Host, Repository, git
from spak.repository import git as runner
from spakweb.ground.errors import Refused
from spakweb.store.ledger.workspaces import folder_of
from spakweb.store.runs.models import Run, RunRecord, Upload
from spakweb.store.sources import addresses, fetching, freeze
from spakweb.store.sources.models import RunSource, Source
from spakweb.work.runs.actions import request_control, start
from spakweb.work.sources import actions
from spakweb.work.worker import execute

RunFrom = Callable[..., Run]
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"


def refused(run: Run) -> str:
    """The code with which a run could not begin, which left nothing."""
    assert run.state == "failed"
    assert (run.count, run.files, RunRecord.objects.filter(run=run).exists()) == (0, None, False)
    assert not list(folder_of(run.key).glob("fetch-*"))
    return str(run.summary["error"]["code"])


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository that is away is not asked again (test_away.py)."""
    monkeypatch.setattr(freeze, "AWAY_WAITS", ())


# ---- where it is


@pytest.mark.parametrize(
    ("status", "code"),
    [(404, "git.gone"), (410, "git.gone"), (302, "git.redirect"), (301, "git.redirect"),
     (403, "git.credentials"), (500, "git.unreachable"), (503, "git.unreachable")],
)  # fmt: skip
def test_what_a_server_answers(
    source: Source, repository: Repository, host: Host, run_from: RunFrom, status: int, code: str
) -> None:
    repository.commit({"a": b"a"})
    host.instead = lambda path: status
    assert refused(run_from()) == code
    assert not any(path.startswith("/elsewhere") for path, _ in host.asked)


def test_a_redirect_after_the_first_answer_is_not_followed_either(
    source: Source, repository: Repository, host: Host, run_from: RunFrom
) -> None:
    repository.commit({"a": b"a"})
    host.instead = lambda path: 307 if path.endswith("git-upload-pack") else None
    assert refused(run_from()) == "git.redirect"
    assert not any(path.startswith("/elsewhere") for path, _ in host.asked)


def test_a_repository_that_was_deleted(source: Source, run_from: RunFrom, repository: Repository) -> None:
    repository.folder.rename(repository.folder.with_name("gone.git"))
    assert refused(run_from()) == "git.gone"


def test_nobody_listens(source: Source, host: Host, run_from: RunFrom) -> None:
    host.close()
    assert refused(run_from()) == "git.unreachable"


@pytest.mark.parametrize(
    ("leads", "code"),
    [(("10.0.0.7",), "git.reach"), (("127.0.0.1", "169.254.169.254"), "git.reach"),
     (("::ffff:10.0.0.1",), "git.reach"), ((), "git.unreachable")],
)  # fmt: skip
def test_a_name_that_leads_inside_is_not_asked(
    source: Source, host: Host, run_from: RunFrom, monkeypatch: pytest.MonkeyPatch, leads: Any, code: str
) -> None:
    monkeypatch.setattr(addresses, "resolve", lambda name: leads)
    assert refused(run_from()) == code
    assert host.asked == []


def test_a_server_that_does_not_answer(
    source: Source, repository: Repository, host: Host, run_from: RunFrom, settings: Any
) -> None:
    repository.commit({"a": b"a"})
    host.hang_s = 30
    settings.SOURCE_S = 1
    assert refused(run_from()) == "git.timeout"


def test_a_run_is_cancelled_while_its_files_are_fetched(
    cast: Any, source: Source, repository: Repository, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"a": b"a"})
    host.hang_s = 30
    monkeypatch.setattr(freeze, "LOOK_S", 0.0)
    run = start(cast["bob"], cast.spec, begun_from=actions.begin(cast["bob"], cast.spec, "app"))
    Run.objects.filter(pk=run.pk).update(wanted="cancel")
    execute.advance(run.key)
    run.refresh_from_db()
    assert (run.state, run.reason, run.wanted, run.count) == ("cancelled", "run.cancelled", "", 0)


def test_one_that_is_cancelled_before_is_not_fetched(cast: Any, source: Source, host: Host) -> None:
    run = start(cast["bob"], cast.spec, begun_from=actions.begin(cast["bob"], cast.spec, "app"))
    request_control(cast["bob"], run, "cancel")
    execute.advance(run.key)
    assert host.asked == []


# ---- credentials


def test_right_and_wrong_credentials(
    cast: Any, source: Source, repository: Repository, host: Host, run_from: RunFrom
) -> None:
    repository.commit({"a": b"a"})
    host.password = "x-access-token:right-token-1"
    assert refused(run_from()) == "git.credentials"
    actions.rotate(cast["alice"], source, "wrong-token-1")
    assert refused(run_from()) == "git.credentials"
    actions.rotate(cast["alice"], source, "right-token-1")
    assert run_from().state == "succeeded"


def test_credentials_of_another_key_of_the_platform(
    cast: Any, source: Source, run_from: RunFrom, settings: Any
) -> None:
    actions.rotate(cast["alice"], source, "right-token-1")
    settings.SECRET_KEY = "another-key" * 6
    assert refused(run_from()) == "git.sealed"


# ---- refs


def test_a_ref_that_there_is_not(source: Source, repository: Repository, run_from: RunFrom) -> None:
    repository.commit({"a": b"a"})
    assert refused(run_from("release/9")) == "git.ref_unknown"


def test_a_ref_that_is_allowed_no_more_when_its_turn_comes(
    cast: Any, source: Source, repository: Repository
) -> None:
    repository.commit({"a": b"a"})
    run = start(cast["bob"], cast.spec, begun_from=actions.begin(cast["bob"], cast.spec, "app", "main"))
    Source.objects.filter(pk=source.pk).update(refs="refs/heads/other")
    execute.advance(run.key)
    run.refresh_from_db()
    assert refused(run) == "git.ref_not_allowed"


def test_a_source_that_was_removed_meanwhile(cast: Any, source: Source) -> None:
    run = start(cast["bob"], cast.spec, begun_from=actions.begin(cast["bob"], cast.spec, "app", "main"))
    actions.remove(cast["alice"], source)
    execute.advance(run.key)
    run.refresh_from_db()
    assert refused(run) == "git.source_gone"


def test_a_ref_at_another_commit_than_the_one_that_is_wanted(
    source: Source, repository: Repository, run_from: RunFrom
) -> None:
    old = repository.commit({"a": b"a"})
    repository.commit({"b": b"b"})
    assert refused(run_from("main", old)) == "git.moved"


def test_a_tag_of_something_else(source: Source, repository: Repository, run_from: RunFrom) -> None:
    git(repository.folder, "update-ref", "refs/tags/odd", repository.blob(b"words"))
    assert refused(run_from("odd")) == "git.no_commit"


@pytest.mark.parametrize("times", [1, 99])
def test_a_push_by_force_while_it_is_fetched(
    source: Source, repository: Repository, run_from: RunFrom, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """What it gives is one commit, and the first record says which; a ref that never rests is an error."""
    repository.commit({"a": b"a"})
    real, left = fetching.find, [times]

    def find(*given: Any) -> Any:
        found = real(*given)
        if left[0]:
            left[0] -= 1
            repository.commit({"a": f"forced {left[0]}".encode()})
        return found

    monkeypatch.setattr(fetching, "find", find)
    run = run_from()
    if times == 1:
        assert run.state == "succeeded"
        assert RunSource.objects.get(run=run).commit == repository.head()
    else:
        assert refused(run) == "git.moved"


# ---- what is in it


def test_more_than_a_run_may_have(
    source: Source, repository: Repository, run_from: RunFrom, settings: Any
) -> None:
    settings.RUN_FILES_BYTES = 1 << 20
    repository.commit({"big": os.urandom(2 << 20)})
    assert refused(run_from()) == "git.huge"
    repository.commit({"bomb": bytes(50 << 20)})  # a few KB as they come
    assert refused(run_from()) == "upload.size"
    settings.RUN_FILES = 3
    repository.commit({str(number): b"" for number in range(4)})
    assert refused(run_from()) == "upload.files"


def test_folders_in_folders_without_end(
    source: Source, repository: Repository, run_from: RunFrom, settings: Any
) -> None:
    """Ten of ten of ten: a few objects whose list is longer than anybody can read."""
    settings.RUN_FILES, settings.SOURCE_S = 1000, 60
    digest = repository.tree({"a": b"a"})
    for _ in range(8):
        digest = repository.tree({f"d{number}": ("040000", digest) for number in range(10)})
    repository.commit({"top": ("040000", digest)})
    assert refused(run_from()) == "upload.files"


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"link": ("120000", b"/etc/passwd")}, "upload.link"),
        ({"link": ("120000", b"../../etc/passwd")}, "upload.link"),
        ({"link": ("120000", b".spak/runs")}, "upload.link"),
        ({"ok": b"", "sub\\name": b""}, "upload.name"),
        ({"line\nbreak": b""}, "upload.name"),
        ({"not-text-\udcff": b""}, "upload.name"),
        ({"x" * 256: b""}, "upload.name"),
        ({".git": b"gitdir: /"}, "git.damaged"),
        ({"..": b""}, "git.damaged"),
        ({".GIT ": ("040000", None)}, "git.damaged"),
        ({"lib": ("160000", "1" * 40)}, "git.submodules"),
        ({"model.bin": POINTER}, "git.lfs"),
    ],
    ids=range(12),
)
def test_links_odd_names_and_what_is_elsewhere(
    source: Source, repository: Repository, run_from: RunFrom, files: dict[str, Any], code: str
) -> None:
    def given(name: str) -> Any:
        mode, content = files[name] if isinstance(files[name], tuple) else ("100644", files[name])
        if mode == "040000":
            return mode, repository.tree({"config": b"[core]\n\tfsmonitor = touch /tmp/x\n"})
        return mode, content if mode == "160000" else repository.blob(content)

    repository.commit({name: given(name) for name in files})
    assert refused(run_from()) == code
    assert not Upload.objects.exists()


def test_submodules_and_pointers_where_the_source_takes_them(
    cast: Any, ground: None, host: Host, repository: Repository, run_from: RunFrom
) -> None:
    url = host.url("app.git")
    actions.add(cast["alice"], cast.team, "loose", url, ["main"], submodules=True, lfs=True)
    repository.commit({"lib": ("160000", "1" * 40), "model.bin": POINTER})
    run = run_from(name="loose")
    assert (run.state, run.files and run.files.files) == ("succeeded", 1)


# ---- what git is given


def test_nothing_of_the_repository_is_executed(
    source: Source, repository: Repository, run_from: RunFrom, tmp_path: Path
) -> None:
    """Attributes that name a filter, a hook of the server's name, settings: they are files like others."""
    seen = tmp_path / "seen"
    attributes = b"* filter=evil diff=evil export-ignore\n"
    config = f'[filter "evil"]\n\tsmudge = touch {seen}\n\tclean = touch {seen}\n'.encode()
    repository.commit({".gitattributes": attributes, ".gitconfig": config, "a": b"$Format:%H$"})
    run = run_from()
    assert run.state == "succeeded"
    assert run.files is not None and run.files.files == 3
    assert not seen.exists()


def test_git_is_told_nothing_of_the_caller_and_no_secret_by_argument(
    cast: Any, source: Source, repository: Repository, host: Host, run_from: RunFrom,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    repository.commit({"a": b"a"})
    host.password = "ci:right-token-1"
    actions.rotate(cast["alice"], source, "right-token-1", "ci")
    hostile = tmp_path / "gitconfig"
    hostile.write_text(
        f'[core]\n\tfsmonitor = touch {tmp_path}/seen\n[url "http://x/"]\n\tinsteadOf = http://\n'
    )
    for name, value in {
        "GIT_CONFIG_GLOBAL": str(hostile), "HTTP_PROXY": "http://127.0.0.1:9",
        "GIT_PROXY_COMMAND": "false", "GIT_TRACE_CURL": str(tmp_path / "trace"), "GIT_SSL_NO_VERIFY": "1",
        "GIT_TEMPLATE_DIR": str(tmp_path),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    lines: list[list[str]] = []
    environments: list[dict[str, str]] = []
    real = runner.subprocess.Popen

    def popen(line: list[str], **about: Any) -> Any:
        lines.append(line)
        environments.append(about["env"])
        return real(line, **about)

    monkeypatch.setattr(runner.subprocess, "Popen", popen)
    run = run_from()
    assert run.state == "succeeded"
    assert "right-token-1" not in str(lines) and "cmlnaHQ" not in str(lines)
    given = {name for env in environments for name in env}
    assert not any(
        name.lower().endswith("proxy") or name.startswith(("GIT_TRACE", "GIT_SSL")) for name in given
    )
    assert not (tmp_path / "trace").exists() and not (tmp_path / "seen").exists()
    told = [bytes(line) for line in RunRecord.objects.filter(run=run).values_list("line", flat=True)]
    assert not any(b"right-token" in line for line in told)
    assert "right-token" not in caplog.text and "right-token" not in Source.objects.get(pk=source.pk).sealed


def test_a_worker_without_git(source: Source, run_from: RunFrom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "WRAPPER", "/nowhere/timeout")
    assert refused(run_from()) == "git.missing"


# ---- folders, and ssh


def test_a_repository_on_the_disk_only_below_a_folder_of_the_operators(
    cast: Any, ground: None, repository: Repository, run_from: RunFrom, settings: Any, tmp_path: Path
) -> None:
    repository.commit({"a": b"a"})
    place = str(repository.folder)
    with pytest.raises(Refused, match="not permitted here"):
        actions.add(cast["alice"], cast.team, "disk", place, ["main"])
    settings.SOURCE_FOLDERS = [str(tmp_path / "git")]
    with pytest.raises(Refused, match="in no folder"):
        actions.add(cast["alice"], cast.team, "disk", str(tmp_path / "other.git"), ["main"])
    actions.add(cast["alice"], cast.team, "disk", place, ["main"])
    assert run_from(name="disk").state == "succeeded"
    outside = Repository(tmp_path / "outside.git")
    outside.commit({"secret": b"s"})
    (tmp_path / "git" / "way-out.git").symlink_to(outside.folder)
    actions.add(cast["alice"], cast.team, "out", str(tmp_path / "git/way-out.git"), ["main"])
    assert refused(run_from(name="out")) == "git.reach"
    actions.add(cast["alice"], cast.team, "none", str(tmp_path / "git/none.git"), ["main"])
    assert refused(run_from(name="none")) == "git.gone"


SSH = """#!/bin/sh
printf '%s\\n' "$@" > {seen}
for word in "$@"; do
  case "$word" in
    IdentityFile=*) cat "${{word#IdentityFile=}}" > {key}; stat -c %a "${{word#IdentityFile=}}" >> {key} ;;
    UserKnownHostsFile=*) cat "${{word#UserKnownHostsFile=}}" > {hosts} ;;
  esac
done
if [ -e {fail} ]; then cat {fail} >&2; exit 255; fi
exec git-upload-pack {repository}
"""


@pytest.fixture
def ssh(tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in ssh's place, which notes what it is given and is the host itself."""
    script = tmp_path / "ssh"
    names = {name: tmp_path / name for name in ("seen", "key", "hosts", "fail")}
    script.write_text(SSH.format(**names, repository=repository.folder))
    script.chmod(0o755)
    monkeypatch.setattr("spakweb.store.sources.git.SSH", str(script))
    return tmp_path


def test_ssh_goes_to_the_address_that_was_judged_with_the_deploy_key(
    cast: Any, ground: None, ssh: Path, repository: Repository, run_from: RunFrom
) -> None:
    commit = repository.commit({"a": b"a"})
    keys = "# comment\ngit.test.example ssh-ed25519 AAAAC3Nza\n"
    made = actions.add(
        cast["alice"], cast.team, "app", "git@git.test.example:team/app.git", ["main"], host_keys=keys
    )
    assert made.public_key.startswith("ssh-ed25519 AAAA") and made.public_key.endswith(
        " spak-kernel-tuners-app"
    )
    run = run_from()
    assert (run.state, RunSource.objects.get(run=run).commit) == ("succeeded", commit)
    given = (ssh / "seen").read_text().split("\n")
    for option in ("HostName=127.0.0.1", "HostKeyAlias=git.test.example", "StrictHostKeyChecking=yes",
                   "BatchMode=yes", "ProxyCommand=none", "IdentitiesOnly=yes"):  # fmt: skip
        assert option in given
    assert "git@git.test.example" in given
    key = (ssh / "key").read_text()
    assert key.startswith("-----BEGIN OPENSSH PRIVATE KEY-----") and key.rstrip().endswith("600")
    assert (ssh / "hosts").read_text() == "git.test.example ssh-ed25519 AAAAC3Nza\n"
    assert "PRIVATE" not in made.sealed


@pytest.mark.parametrize(
    ("said", "code"),
    [("Host key verification failed.\nfatal: Could not read from remote repository.", "git.host_key"),
     ("git@h: Permission denied (publickey).\nfatal: Could not read from remote.", "git.credentials"),
     ("ssh: connect to host h port 22: Connection refused", "git.unreachable"),
     ("ERROR: Repository not found.", "git.gone"), ("something new", "git.gone")],
)  # fmt: skip
def test_what_ssh_says(cast: Any, ground: None, ssh: Path, run_from: RunFrom, said: str, code: str) -> None:
    url = "ssh://git@git.test.example:2222/app.git"
    actions.add(cast["alice"], cast.team, "app", url, ["main"], host_keys="ssh-ed25519 AAAAC3Nza")
    (ssh / "fail").write_text(said + "\n")
    assert refused(run_from()) == code
    assert "2222" in (ssh / "seen").read_text().split("\n")
