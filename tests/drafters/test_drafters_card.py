from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd
import pytest

from speclab import paths
from speclab.drafters import card, measure
from speclab.drafters.recipe import HeadRecipe, Recipe
from speclab.engines.base import Reading
from speclab.errors import UserError
from speclab.lab import Arm, Speculation
from speclab.prompts.base import Prompt

EAGLE3 = Speculation(method="eagle3", model="models/a-eagle3", num_speculative_tokens=3)
ARM = Arm(lab="l", arm="a-eagle3", label="a", speculation=EAGLE3)
PROMPTS = [Prompt("chat", "chat/0", "Hello?")]


def accepted(before: Reading, after: Reading) -> measure.Accepted:
    return measure.accepted(ARM, "fresh questions", PROMPTS, before, after, "measured (vLLM 0.32.0, a-cpu)")


def test_acceptance_is_the_difference_of_two_readings() -> None:
    before = Reading(at_s=0, drafts=100, accepted_by_position=(50.0, 20.0, 10.0))
    after = Reading(at_s=9, drafts=300, accepted_by_position=(150.0, 70.0, 20.0))
    found = accepted(before, after)
    assert found.drafts == 200
    assert found.by_position == (0.5, 0.25, 0.05)
    assert found.length == pytest.approx(1.8)


def test_a_fresh_servers_counters_begin_at_nothing() -> None:
    found = accepted(Reading(at_s=0), Reading(at_s=9, drafts=4, accepted_by_position=(3.0, 1.0, 0.0)))
    assert found.by_position == (0.75, 0.25, 0.0)


def test_a_server_that_drafted_nothing_is_a_mistake_and_no_zero() -> None:
    with pytest.raises(UserError, match="no draft was made on fresh questions"):
        accepted(Reading(at_s=0, drafts=7, accepted_by_position=(1.0, 0.0, 0.0)), Reading(at_s=9, drafts=7))


def test_a_card_says_hash_data_and_acceptance_as_they_were_measured(tmp_path: Path) -> None:
    folder, notes = tmp_path / "a-eagle3", tmp_path / "a"
    folder.mkdir()
    notes.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (notes / "corpus.csv").write_text("what,count\nanswer tokens,1234567\n", encoding="utf-8")
    rows = [accepted(Reading(at_s=0), Reading(at_s=9, drafts=8, accepted_by_position=(4.0, 2.0, 1.0)))]
    said = card.write(Recipe(name="a", target="models/t", licence="Apache-2.0"), folder, notes, rows).read_text(
        encoding="utf-8"
    )
    assert hashlib.sha256(b"weights").hexdigest() in said
    assert "| fresh questions | 1 | 1.875 | 0.500 0.250 0.125 |" in said
    assert "| answer tokens | 1,234,567 |" in said
    assert "Licence: Apache-2.0." in said
    assert "draft_vocabulary: 12288" in said
    assert "goes on" not in said
    further = Recipe(name="a", target="models/t", head=HeadRecipe(start="an/old-head", beside=("another/corpus",)))
    said = card.text(further, folder, notes, rows)
    assert "It goes on from `an/old-head`, and learns from `another/corpus` too" in said
    kept = pd.read_csv(notes / "acceptance-a-eagle3.csv").iloc[0]
    assert (kept["set"], kept["drafts"], kept["length"], kept["position_2"]) == ("fresh questions", 8, 1.875, 0.125)


def test_the_kept_weights_are_those_of_their_cards() -> None:
    cards = sorted(paths.drafters().glob("*/README.md"))
    assert "smollm2-135m-eagle3" in [file.parent.name for file in cards]
    for file in cards:
        weights = next(file.parent.glob("*.safetensors"))
        assert hashlib.sha256(weights.read_bytes()).hexdigest() in file.read_text(encoding="utf-8")


def test_the_kept_head_is_agreed_with_more_often_than_the_first_one_that_was_tried() -> None:
    measured = measured_of("smollm2-135m-eagle3")
    assert measured["held out"] > 1.85
    assert measured["fresh questions"] > 1.56
    assert measured["HumanEval stubs"] > 1.84
    assert (measured_of("smollm2-135m-eagle3-longer") > measured).all(), "an hour more helps on every set"


def measured_of(drafter: str) -> pd.Series:
    return pd.read_csv(paths.drafters() / "smollm2-135m" / f"acceptance-{drafter}.csv").set_index("set")["length"]
