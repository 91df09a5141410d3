"""The verifier in JavaScript, which shares no code with SPAK: in Chromium, and in Node where there is one."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from needs import missing
from pack_kit import GOLDEN, LOG, PUBLIC, packed, packs, tampered
from platform_kit import CHROMIUM, chromium
from spak.ledger.note import own_verifier
from spak.ledger.pack import Keys, verify_pack

VERIFIER = Path(__file__).resolve().parents[2] / "verifier"
Verify = Callable[[Mapping[str, bytes], Mapping[str, str]], dict[str, Any]]
"""Packs by name and keys to reports by name."""

CALL = """async ([packs, keys]) => {
    const { verifyPack } = await import("http://localhost/verify-pack.mjs");
    const found = {};
    for (const [name, text] of Object.entries(packs)) {
        found[name] = await verifyPack(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)), keys);
    }
    return found;
}"""


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """A page of Chromium that has the verifier's files and nothing else."""
    if CHROMIUM is None:
        missing("Chromium", "chromium fonts-dejavu")
    with chromium() as browser:
        page = browser.new_page()
        page.route("**/*", lambda route: route.fulfill(path=VERIFIER / Path(route.request.url).name))
        page.goto("http://localhost/index.html")
        yield page


@pytest.fixture(params=[pytest.param("browser", marks=pytest.mark.e2e), "node"])
def verify(request: pytest.FixtureRequest, tmp_path: Path) -> Verify:
    if request.param == "browser":
        page = request.getfixturevalue("page")
        return lambda packs, keys: page.evaluate(
            CALL, [{name: b64encode(data).decode() for name, data in packs.items()}, dict(keys)]
        )
    if shutil.which("node") is None:
        pytest.skip("Node is not installed, and not needed: Chromium runs the same file")

    def call(packs: Mapping[str, bytes], keys: Mapping[str, str]) -> dict[str, Any]:
        for name, data in packs.items():
            (tmp_path / name).write_bytes(data)
        names = {"key": "--key", "logKey": "--log-key", "witness": "--witness"}
        options = [text for name, key in keys.items() for text in (names[name], key)]
        done = subprocess.run(
            ["node", VERIFIER / "verify-pack.mjs", *options, *packs],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        found = {found.pop("file"): found for found in map(json.loads, done.stdout.splitlines())}
        assert done.returncode == (0 if all(one["ok"] for one in found.values()) else 1), done.stderr
        return found

    return call


def test_the_verifier_is_short_and_imports_nothing() -> None:
    text = (VERIFIER / "verify-pack.mjs").read_text()
    assert len(text.splitlines()) < 300
    library = text[: text.index("globalThis.process")]
    assert "import(" not in library and "\nimport " not in library


def test_it_reads_every_pack_and_agrees_with_ours(verify: Verify) -> None:
    made = dict(packs())
    assert len(made) >= 100
    found = verify(made, {})
    assert [name for name in made if not found[name]["ok"]] == []
    for name, data in made.items():
        ours = verify_pack(data.splitlines(keepends=True), replayed=False)
        assert (ours.ok, ours.to_json()["run"]) == (True, found[name]["run"])
    both = {name: data for name, data in made.items() if name.endswith(("-both", "-part"))}
    signed = verify(both, {"key": PUBLIC, "logKey": str(LOG)})
    assert [one for one in signed.values() if one["problems"] or one["notes"]] == []
    unsigned = verify({"part": made["hello-part"], "both": made["hello-both"]}, {"logKey": str(LOG)})
    assert [one["ok"] for one in unsigned.values()] == [False, True]


def test_it_refuses_what_was_tampered_with(verify: Verify) -> None:
    whole = packed(next(file for file in GOLDEN if file.stem == "tuning"))
    changed = {str(seed): tampered(whole, random.Random(seed)) for seed in range(100)}
    found = verify(changed, {"key": PUBLIC})
    assert [name for name, data in changed.items() if data != whole and found[name]["ok"]] == []


def test_it_refuses_keys_of_strangers(verify: Verify) -> None:
    made = {name: data for name, data in packs() if name.startswith("hello-")}
    stranger = own_verifier("example.com/log", bytes(32))
    codes = {
        name: {problem["code"] for problem in one["problems"]}
        for name, one in verify(made, {"key": PUBLIC, "logKey": str(stranger)}).items()
    }
    assert codes == {
        "hello-plain": {"signature", "proof"},
        "hello-signed": {"proof"},
        "hello-logged": {"signature", "proof"},
        "hello-both": {"proof"},
        "hello-part": {"proof"},
    }


@pytest.mark.parametrize("data", [b"", b"\n", b"{}", b"\xff\n", b'{"_type":1}\n', b'{"dsseEnvelope":7}\n'])
def test_it_refuses_anything_else(verify: Verify, data: bytes) -> None:
    rest = GOLDEN[0].read_bytes()
    found = verify({"bare": data, "with": data + rest, "log": packed(GOLDEN[0], None, "nonsense")}, {})
    assert [one["ok"] for one in found.values()] == [False, False, False]
    assert verify_pack(packed(GOLDEN[0], None, "nonsense").splitlines(True), Keys()).ok is False


@pytest.mark.e2e
def test_the_page_takes_a_file(page: Any, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_bytes(packed(GOLDEN[0]))
    page.fill("#key", PUBLIC)
    page.set_input_files("#file", tmp_path / "run.jsonl")
    page.wait_for_function("document.querySelector('#found').textContent.includes('ok')")
    assert json.loads(page.text_content("#found"))["ok"] is True
