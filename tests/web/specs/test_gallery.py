"""What a card of the gallery says: one paragraph for a browser, no command lines."""

from __future__ import annotations

import pytest

from spakweb.store.specs.examples import examples
from spakweb.work.specs.show import intro


@pytest.mark.parametrize("name", sorted(examples()))
def test_a_card_says_in_sentences_what_the_spec_does(name):
    said = intro(examples()[name])
    assert said.endswith(".") and len(said) < 260
    assert "spak " not in said and "make " not in said and ":  " not in said


def test_a_command_in_the_first_paragraph_ends_it():
    assert intro("// Greets. Run it:  spak run x.spak\n// More.\n") == "Greets."
    assert intro("# One\n# sentence.\n#\n#   spak run x\n# Other\ntask T {}\n") == "One sentence."
    assert intro("task T {}\n// Not at the top.\n") == ""
