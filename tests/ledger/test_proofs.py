"""Proofs of inclusion and consistency as texts: what they prove, and that nothing else proves it."""

import json
from base64 import b64decode, b64encode

import pytest

from spak.errors import LedgerError
from spak.ledger import merkle, note, proofs

SEED, ORIGIN = bytes(range(32)), "example.com/team"
KEY = note.own_verifier(ORIGIN, SEED)
LINES = [b'{"#":"%d"}\n' % number for number in range(5)]


def leaf(number: int) -> proofs.Leaf:
    tree = merkle.Tree(LINES)
    if number == 3:
        return proofs.Leaf("run-3", 2, "h" * 43, None)
    return proofs.Leaf(f"run-{number}", 5, "h" * 43, merkle.root(5, tree.node))


LOG = merkle.Tree([leaf(number).text() for number in range(7)])


def signed(size: int, log: merkle.Tree = LOG, seed: bytes = SEED) -> str:
    return note.sign(note.Head(ORIGIN, size, merkle.root(size, log.node)), seed).text()


def proof(index: int = 4, size: int = 7, seq: int | None = 2) -> str:
    path = merkle.inclusion(index, size, LOG.node)
    record = None
    if seq is not None:
        record = (seq, LINES[seq], merkle.inclusion(seq, 5, merkle.Tree(LINES).node))
    return proofs.inclusion_text(leaf(index), index, path, signed(size), record)


def code(text: str, key: note.Verifier = KEY) -> str:
    with pytest.raises(LedgerError) as caught:
        proofs.check_inclusion(text, key)
    return caught.value.code


def test_a_record_and_a_run_and_a_tombstone_are_proved() -> None:
    for seq in range(5):
        found = proofs.check_inclusion(proof(seq=seq), KEY)
        assert (found.leaf, found.index, found.seq, found.line) == (leaf(4), 4, seq, LINES[seq])
    for index, size in ((0, 1), (3, 7), (6, 7)):
        whole = proofs.check_inclusion(proof(index, size, None), KEY)
        assert (whole.leaf, whole.seq, whole.head.size) == (leaf(index), None, size)


def test_the_text_begins_as_a_proof_of_the_format() -> None:
    """c2sp.org/tlog-proof: first line, extra, index, hashes, an empty line, the checkpoint verbatim."""
    lines = proof().split("\n")
    assert lines[0] == "c2sp.org/tlog-proof@v1" and lines[2] == "index 4"
    assert json.loads(b64decode(lines[1].removeprefix("extra ")))["record"]["seq"] == 2
    assert proof().endswith("\n\n" + signed(7))


def extra(text: str, **members: object) -> str:
    """The proof with other members in its extra line."""
    first, second, rest = text.split("\n", 2)
    value = {**json.loads(b64decode(second.removeprefix("extra "))), **members}
    return f"{first}\nextra {b64encode(json.dumps(value).encode()).decode()}\n{rest}"


def test_another_leaf_record_place_or_path_is_not_proved() -> None:
    text = proof()
    record = json.loads(b64decode(text.split("\n")[1].removeprefix("extra ")))["record"]
    wrong = [
        text.replace("index 4", "index 5"),
        text.replace("index 4", "index 04"),
        text.replace("index 4\n", ""),
        text.replace("tlog-proof@v1", "tlog-proof@v2"),
        text.replace("extra ", "extra !"),
        text.replace("\n\n", "\nAAAA\n\n", 1),
        extra(text, leaf=leaf(5).text().decode()),
        extra(text, leaf="{}"),
        extra(text, leaf=leaf(4).text().decode().replace(":", ": ", 1)),
        extra(text, leaf=3),
        extra(text, record={**record, "seq": 3}),
        extra(text, record={**record, "seq": -1}),
        extra(text, record={**record, "seq": True}),
        extra(text, record={**record, "line": LINES[3].decode()}),
        extra(text, record={**record, "path": record["path"][1:]}),
        extra(text, record={**record, "path": [1]}),
        extra(text, record={**record, "path": record["path"] * 40}),
        extra(text, record=[]),
        extra(proof(3, 7, None), record=record),
        "",
        "\n\n",
    ]
    assert {code(one) for one in wrong} == {"ledger.proof"}
    assert code(text.replace(signed(7), signed(6))) == "ledger.proof"
    assert code(text.replace(signed(7), signed(7, seed=bytes(32)))) == "ledger.signature"
    assert code(text.replace(signed(7), "")) == "ledger.checkpoint"


def test_a_later_checkpoint_continues_an_earlier_one() -> None:
    for old in range(8):
        earlier = note.Head(ORIGIN, old, merkle.root(old, LOG.node))
        text = proofs.consistency_text(old, merkle.consistency(old, 7, LOG.node), signed(7))
        assert proofs.check_consistency(text, earlier, KEY).size == 7


def test_two_histories_are_not_consistent() -> None:
    other = merkle.Tree([b"another", *(leaf(number).text() for number in range(1, 7))])
    for old in range(1, 8):
        earlier = note.Head(ORIGIN, old, merkle.root(old, LOG.node))
        for log in (LOG, other):
            text = proofs.consistency_text(old, merkle.consistency(old, 7, log.node), signed(7, other))
            with pytest.raises(LedgerError) as caught:
                proofs.check_consistency(text, earlier, KEY)
            assert caught.value.code == "ledger.proof"


def test_no_other_text_is_a_proof_of_consistency() -> None:
    earlier = note.Head(ORIGIN, 4, merkle.root(4, LOG.node))
    text = proofs.consistency_text(4, merkle.consistency(4, 7, LOG.node), signed(7))
    lines = text.split("\n")
    for wrong in (
        text.replace("old 4", "old 3"),
        text.replace("old 4", "4"),
        "\n".join([lines[0], *lines[2:]]),
        "",
    ):
        with pytest.raises(LedgerError) as caught:
            proofs.check_consistency(wrong, earlier, KEY)
        assert caught.value.code in ("ledger.proof", "ledger.checkpoint")
