from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from speclab.prompts.base import Prompt, PromptSet

TEXTS = st.lists(st.text(), min_size=2, max_size=6, unique=True)


def prompt_set(texts: list[str]) -> PromptSet:
    first, *rest = (Prompt("chat", f"chat/{number}", text) for number, text in enumerate(texts))
    return PromptSet(measured=tuple(rest), warm_up=(first,))


def test_sha256_is_the_hash_of_ids_and_texts_as_json():
    # printf '[["a", "hi"], ["w", "ho"]]' | sha256sum
    prompts = PromptSet((Prompt("chat", "a", "hi"),), (Prompt("chat", "w", "ho"),))
    assert prompts.sha256 == "a3d3c56fd133b8d0a8ab7774dc55c753951255aa5e3ade3446894ee8efb9cc53"


@given(TEXTS, st.data())
def test_sha256_changes_with_any_text(texts: list[str], data: st.DataObject):
    prompts = prompt_set(texts)
    where = data.draw(st.integers(0, len(prompts.measured) - 1))
    changed = list(prompts.measured)
    changed[where] = replace(changed[where], text=changed[where].text + "!")
    assert prompt_set(texts).sha256 == prompts.sha256
    assert replace(prompts, measured=tuple(changed)).sha256 != prompts.sha256
    warm_up = (replace(prompts.warm_up[0], text=prompts.warm_up[0].text + "!"),)
    assert replace(prompts, warm_up=warm_up).sha256 != prompts.sha256


def test_sha256_changes_with_order():
    prompts = prompt_set(["a", "b", "c"])
    assert replace(prompts, measured=prompts.measured[::-1]).sha256 != prompts.sha256
