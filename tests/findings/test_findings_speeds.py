from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speclab.errors import UserError
from speclab.findings.intervals import DRAWS
from speclab.findings.speeds import Speed, equal_shares, mixed, parts_of, speeds, together


def finding(name: str, arm: str, workload: str, concurrency: float, value: float, status: str = "ok") -> dict:
    return {
        **{"finding": name, "arm": arm, "workload": workload, "concurrency": concurrency},
        **{"value": value, "status": status},
    }


FOUND = pd.DataFrame(
    [
        finding("system_throughput", "baseline", "chat", 1.0, 100.0),
        finding("system_throughput", "baseline", "revision", 1.0, 300.0),
        finding("system_throughput", "baseline", "chat", 4.0, 400.0),
        finding("speed_up", "eagle3-k3", "chat", 1.0, 2.0),
        finding("speed_up", "eagle3-k3", "revision", 1.0, 3.0),
        finding("speed_up", "ngram-k8", "chat", 1.0, 0.5),
        finding("speed_up", "ngram-k8", "revision", 1.0, 1.5, "failed check"),
        finding("speed_up", "eagle3-k3", "chat", 4.0, 1.8),
    ]
)


def no_draws(finding: str, **where: object) -> None:
    return None


def test_only_what_passed_its_checks_can_be_chosen() -> None:
    places = speeds(FOUND, no_draws, ["eagle3-k3", "ngram-k8"])
    assert {workload: {at: sorted(arms) for at, arms in by.items()} for workload, by in places.items()} == {
        "chat": {1.0: ["baseline", "eagle3-k3", "ngram-k8"], 4.0: ["baseline", "eagle3-k3"]},
        "revision": {1.0: ["baseline", "eagle3-k3"]},
    }
    assert places["chat"][1.0]["eagle3-k3"].value == 2.0
    assert places["chat"][1.0]["baseline"].value == 1.0


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (FOUND[FOUND["arm"] == "baseline"], "no arm stands beside the baseline .arms with results: baseline."),
        (FOUND.iloc[:0], "no arm stands beside the baseline .arms with results: none."),
        (FOUND.assign(status="failed check"), r"no speed-up passed its checks \(5 failed check\)"),
    ],
)
def test_without_a_speed_up_it_says_why(found: pd.DataFrame, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        speeds(found, no_draws, ["eagle3-k3", "ngram-k8"])


def test_f4_the_advice_where_nothing_passed_points_to_the_checks_and_guesses_no_cause() -> None:
    with pytest.raises(UserError) as refused:
        speeds(FOUND.assign(status="failed check"), no_draws, ["eagle3-k3", "ngram-k8"])
    assert "speclab check LAB" in refused.value.remedy
    assert "quieter" not in refused.value.remedy


def test_a_mix_takes_the_time_of_its_parts() -> None:
    """Half the tokens at 100 tok/s and half at 300: three quarters and one quarter of the baseline's time.

    With speed-ups of 2 and 3 that time shrinks to 3/8 + 1/12 = 11/24, which is 24/11 times as fast.
    """
    places = speeds(FOUND, no_draws, ["eagle3-k3", "ngram-k8"])
    parts = parts_of(places, FOUND, {"chat": 0.5, "revision": 0.5})
    assert parts == {1.0: {"chat": pytest.approx(0.75), "revision": pytest.approx(0.25)}}
    mix = mixed(places, parts)
    assert mix[1.0]["eagle3-k3"].value == pytest.approx(24 / 11)
    assert mix[1.0]["baseline"].value == 1.0
    assert "ngram-k8" not in mix[1.0], "what it does on one part of the mix is not known"


def test_quotients_and_mixes_carry_the_noise() -> None:
    rng = np.random.default_rng(7)
    noise = rng.lognormal(0, 0.1, DRAWS)
    one, other = Speed(2.0, 2.0 * noise), Speed(1.0, noise)
    assert one.over(other).interval == pytest.approx((2.0, 2.0)), "resampled together, the noise falls out"
    assert one.over(Speed(2.0, None)).interval == pytest.approx((np.exp(-0.196), np.exp(0.196)), abs=0.02)
    assert np.isnan(Speed(2.0, None).interval).all()
    mix = together({"chat": one, "revision": Speed(2.0, None)}, {"chat": 0.5, "revision": 0.5})
    assert mix.value == pytest.approx(2.0)
    low, high = mix.interval
    assert one.interval[0] < low < 2.0 < high < one.interval[1]


def test_equal_shares_add_up() -> None:
    assert equal_shares(("chat", "completion", "revision")) == pytest.approx(
        {"chat": 1 / 3, "completion": 1 / 3, "revision": 1 / 3}
    )
