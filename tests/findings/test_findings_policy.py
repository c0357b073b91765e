from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from speclab.findings.intervals import DRAWS
from speclab.findings.policy import Choice, Switch, choices, switches
from speclab.findings.speeds import BY_ITSELF, Speed

ORDER = ["baseline", "k2", "k8"]


def speed(value: float, spread: float = 0.01, seed: int = 0) -> Speed:
    """A speed-up whose logarithm scatters by `spread`."""
    return Speed(value, value * np.random.default_rng(seed).lognormal(0, spread, DRAWS))


def table(**by_arm: Mapping[float, Speed]) -> dict[float, dict[str, Speed]]:
    at = sorted({concurrency for curve in by_arm.values() for concurrency in curve})
    return {
        concurrency: {"baseline": BY_ITSELF} | {arm: curve[concurrency] for arm, curve in by_arm.items()
                                                if concurrency in curve}
        for concurrency in at
    }  # fmt: skip


def arms(made: list[Choice]) -> list[str]:
    return [choice.arm for choice in made]


def test_the_fastest_arm_is_chosen_and_the_baseline_where_none_beats_it() -> None:
    made = choices(table(k2={1.0: speed(1.5), 64.0: speed(0.9)}, k8={1.0: speed(2.0), 64.0: speed(0.8)}), ORDER)
    assert arms(made) == ["k8", "baseline"]
    assert [choice.speed.value for choice in made] == [2.0, 1.0]
    assert [choice.status for choice in made] == ["ok", "ok"]
    assert [choice.ties for choice in made] == [("k8",), ("baseline",)]


def test_arms_that_cannot_be_told_apart_go_to_the_smaller_k_and_then_to_what_runs() -> None:
    tied = {1.0: speed(1.50, 0.05, 1), 4.0: speed(1.50, 0.05, 1)}
    made = choices(table(k2=tied, k8={1.0: speed(1.52, 0.05, 2), 4.0: speed(1.52, 0.05, 2)}), ORDER)
    assert arms(made) == ["k2", "k2"]
    assert [choice.best for choice in made] == ["k8", "k8"]
    assert set(made[0].ties) == {"k2", "k8"}
    kept = choices(table(k2={4.0: speed(1.50, 0.05, 1)}, k8={1.0: speed(2.0), 4.0: speed(1.52, 0.05, 2)}), ORDER)
    assert arms(kept) == ["k8", "k8"], "a switch that is not shown to help is not made"


def test_without_known_noise_the_higher_value_wins() -> None:
    made = choices(table(k2={1.0: Speed(1.01, None)}, k8={1.0: Speed(0.99, None)}), ORDER)
    assert arms(made) == ["k2"]


def test_what_is_not_decided_follows_what_is_decided_beside_it() -> None:
    gains, unclear, loses = speed(1.5), speed(1.05, 0.2), speed(0.7)
    made = choices(table(k2={1.0: unclear, 4.0: gains, 16.0: unclear, 64.0: gains, 128.0: unclear, 256.0: loses}),
                   ORDER)  # fmt: skip
    assert arms(made) == ["k2", "k2", "k2", "k2", "baseline", "baseline"]
    assert [choice.status for choice in made] == [
        *("not resolved", "ok", "not resolved"), *("ok", "not resolved", "ok")
    ]  # fmt: skip
    nowhere = choices(table(k2={1.0: unclear, 4.0: unclear}), ORDER)
    assert arms(nowhere) == ["baseline", "baseline"], "a gain that is not shown is none"


def test_a_switch_has_a_gap_as_wide_as_random_traffic_scatters() -> None:
    """The speed-up falls from 2 to 1/2 from 64 to 256: to 1 at a third of the way in the speed-up... at 128.

    Linear in the logarithm of the concurrency, 1 lies (2 - 1) / (2 - 0.5) = 2/3 of the way: 64 x 4^(2/3) = 161.3.
    """
    curve = table(k2={64.0: speed(2.0, 1e-4), 256.0: speed(0.5, 1e-4)})
    made = choices(curve, ORDER)
    found = switches(made, curve)
    value = 64 * 4 ** (2 / 3)
    assert found == [
        Switch("k2", "baseline", pytest.approx(value), int(value - value**0.5), int(value + value**0.5) + 1, "ok")
    ]
    assert (found[0].low, found[0].high) == (148, 174)


def test_a_noisy_crossing_makes_the_gap_wider_than_the_traffic_does() -> None:
    curve = table(k2={64.0: speed(2.0, 0.1, 1), 256.0: speed(0.5, 0.1, 2)})
    (found,) = switches(choices(curve, ORDER), curve)
    assert found.low < 148
    assert found.high > 174


def test_a_switch_between_two_arms_is_where_their_quotient_falls_to_one() -> None:
    curve = table(
        k8={1.0: speed(3.0, 1e-4), 16.0: speed(1.5, 1e-4)}, k2={1.0: speed(2.0, 1e-4), 16.0: speed(2.0, 1e-4)}
    )
    (found,) = switches(choices(curve, ORDER), curve)
    # the quotient falls from 1.5 to 0.75: to 1 at two thirds of the way, 16^(2/3)
    assert (found.below, found.above, found.value) == ("k8", "k2", pytest.approx(16 ** (2 / 3), rel=0.01))


def test_where_arms_were_not_run_side_by_side_the_gap_is_what_lies_between() -> None:
    curve = table(k2={4.0: speed(1.5)}, k8={16.0: speed(1.5)})
    (found,) = switches(choices(curve, ORDER), curve)
    assert found == Switch("k2", "k8", None, 5, 15, "not resolved")


def test_no_change_no_switch() -> None:
    curve = table(k2={1.0: speed(1.5), 16.0: speed(1.2)})
    assert switches(choices(curve, ORDER), curve) == []
    assert choices({}, ORDER) == []
