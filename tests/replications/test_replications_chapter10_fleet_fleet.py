from __future__ import annotations

from typing import Any

import pytest

from speclab.config import validated
from speclab.errors import UserError
from speclab.replications.chapter10.fleet.fleet import AssumedSpeculation, Fleet
from speclab.roofline.devices import DEVICES
from speclab.roofline.speculation import tokens_per_pass_flat


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"device": "v100"}, ("device: found 'v100'", *DEVICES)),
        ({"gpus": 3}, ("gpus: 3", "Llama 3 8B has 32 heads and 8", "divide both")),
        ({"target": "llama-3-70b"}, ("weights do not fit 1 x h100-sxm", "more gpus")),
        ({"speculation": {"drafter": "smollm2-135m", "k": 3, "alpha": 0.7}}, ("49,152", "128,256", "vocabulary")),
        ({"speculation": {"drafter": "mtp-head-70b", "k": 3, "alpha": 0.7}}, ("as wide as the target",)),
        ({"speculation": {"drafter": "mtp", "k": 3, "alpha": 0.7}}, ("drafter: found 'mtp'", "mtp-head-8b")),
    ],
)
def test_a_fleet_that_cannot_be_says_what_would_do(content: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as error:
        validated(Fleet, content)
    assert [word for word in words if word not in str(error.value)] == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"k": 0, "alpha": 0.7}, "k: found 0; must be greater than or equal to 1"),
        ({"k": 3, "alpha": 1.2}, "alpha: found 1.2; must be less than or equal to 1"),
        ({"k": 3, "alpha": -0.1}, "alpha: found -0.1; must be greater than or equal to 0"),
        ({"k": 3}, "give either alpha or marginal"),
        ({"k": 3, "alpha": 0.7, "draft_rate": 0.5}, "draft_rate goes with marginal"),
        ({"k": 3, "marginal": [0.7, 0.5]}, "one value for each of the k = 3 positions"),
        ({"k": 2, "marginal": [0.5, 0.7]}, "none above the one before it"),
        ({"k": 1, "alpha": 0.7, "below_rows": 0}, "below_rows: found 0"),
    ],
)
def test_speculation_that_cannot_be(content: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        validated(AssumedSpeculation, content)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("fleet", "tokens"),
    [
        (Fleet(), 426_788),
        (Fleet(speculation=AssumedSpeculation(drafter="mtp-head-8b", k=3, alpha=0.7)), 410_628),
        (Fleet(target="llama-3-70b", gpus=4), 448_288),
    ],
)
def test_room_for_the_cache_is_the_source_s(fleet: Fleet, tokens: int) -> None:
    assert fleet.kv_room == tokens


def test_a_batch_that_does_not_fit_names_the_most_that_does() -> None:
    fleet = Fleet()
    fleet.check_batch(833, 512)  # 426,496 of 426,788 tokens
    with pytest.raises(UserError, match=r"834 rows of 512 tokens .* has room for 426,788; .* 833 rows fit"):
        fleet.check_batch(834, 512)
    with pytest.raises(UserError, match="not even one row fits"):
        fleet.check_batch(1, 500_000)


def test_expected_tokens_of_a_pass() -> None:
    assert AssumedSpeculation(drafter="mtp-head-8b", k=3, alpha=0.7).tokens_per_pass == tokens_per_pass_flat(0.7, 3)
    assert AssumedSpeculation(k=2, marginal=(0.5, 0.25), draft_rate=0.4).tokens_per_pass == pytest.approx(1.3)
