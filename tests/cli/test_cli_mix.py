from __future__ import annotations

import pytest

from speclab.cli.mix import shares_of
from speclab.errors import UserError


def test_a_stated_mix_is_read() -> None:
    known = ("chat", "completion", "revision")
    assert shares_of("chat=.5, completion=.3,revision=.2", known) == {"chat": 0.5, "completion": 0.3, "revision": 0.2}
    assert shares_of("chat=0.333,completion=0.333,revision=0.333", known)["chat"] == 0.333


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("prose=1", "--mix: unknown workload 'prose'; this lab has chat, revision"),
        ("chat=.5,chat=.5", "chat stands twice"),
        ("chat=half,revision=.5", "found 'chat=half'; write chat=0.5"),
        ("chat", "found 'chat'; write chat=0.5"),
        ("chat=0,revision=1", "found 'chat=0'; give a share above 0"),
        ("chat=nan", "found 'chat=nan'; give a share above 0"),
        ("chat=.5,revision=.3", "the shares add up to 0.8; make them add up to 1"),
        ("", "unknown workload ''"),
    ],
)
def test_a_mix_that_cannot_be_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        shares_of(text, ("chat", "revision"))
    assert sentence in str(caught.value)
