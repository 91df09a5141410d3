import sys

sys.path.insert(0, ".")

from slug import slug  # noqa: E402


def test_one_word():
    assert slug("Kernel") == "kernel"


def test_two_words():
    assert slug("Write Ahead") == "write-ahead"


def test_punctuation_is_dropped():
    assert slug("Replay, bit for bit!") == "replay-bit-for-bit"


def test_spaces_are_one_hyphen():
    assert slug("  a   b ") == "a-b"
