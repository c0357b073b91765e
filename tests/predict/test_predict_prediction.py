from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from speclab.errors import UserError
from speclab.predict.cost import token_cost
from speclab.predict.fit import Fit, Place
from speclab.predict.parameters import H100_8B
from speclab.predict.prediction import Question, Widening, crossing, doublings, normals, predict, speed_up
from speclab.predict.step_time import Draft
from speclab.predict.traffic import Traffic
from speclab.roofline.devices import device
from speclab.roofline.transformers import transformer

TARGET, HEAD = transformer("llama-3-8b"), transformer("eagle3-head-8b")
QUESTION = Question(TARGET, Draft(3, HEAD), (0.63, 0.38, 0.25), Traffic(500.0))
FIT = Fit(H100_8B, (), (), np.zeros((0, 0)), {}, 1.0, (Place(1, 1, 300), Place(221, 884, 300)), "test")
UNSURE = replace(FIT, held=("flop_per_s",), covariance=np.array([[0.1**2]]))
FAR = Widening(0.1)


def test_break_even_and_speed_up_are_two_sides_of_one_ratio() -> None:
    found = predict(FIT, QUESTION, [1, 16, 128])
    tokens = 1 + 0.63 + 0.38 + 0.25
    assert [s * b for s, b in zip(found.speed_up, found.break_even_length, strict=True)] == pytest.approx([tokens] * 3)
    assert found.break_even_length == pytest.approx(
        [s / b for s, b in zip(found.step_s, found.baseline_step_s, strict=True)]
    )
    assert found.low == found.high == found.speed_up  # parameters that count as exact


def test_at_the_crossover_the_speed_up_is_one() -> None:
    at = predict(FIT, QUESTION, [1]).crossover
    assert at.status == "ok"
    assert at.value is not None
    assert float(speed_up(H100_8B, QUESTION, at.value, 3)) == pytest.approx(1, abs=2e-3)
    assert at.low == at.high == pytest.approx(at.value)


def test_uncertain_arithmetic_makes_an_uncertain_crossover() -> None:
    at = predict(UNSURE, QUESTION, [128]).crossover
    assert at.low is not None
    assert at.high is not None
    # 10% either side in the rate, 1.64 of them to the ends; past the bend a crossover moves faster than the rate
    assert at.low < 0.9 * float(at.value or 0) < 1.1 * float(at.value or 0) < at.high


def test_free_drafts_always_pay_and_useless_ones_never() -> None:
    free = H100_8B.replaced(flop_per_s=1e20, byte_per_s=1e12)
    assert crossing(free, replace(QUESTION, draft=Draft(3, None))) == float("inf")
    assert crossing(H100_8B, replace(QUESTION, acceptance=(0.0, 0.0, 0.0))) == 0
    found = predict(FIT, replace(QUESTION, acceptance=(0.0, 0.0, 0.0)), [1, 64])
    assert found.crossover.status == "always below"
    assert found.crossover.value is None
    assert found.best_k == [0, 0]


def test_the_best_k_falls_as_compute_runs_out() -> None:
    best = predict(FIT, QUESTION, [1, 64, 128, 1024]).best_k
    assert best[0] == 3
    assert best == sorted(best, reverse=True)
    assert best[-1] < 3


def test_what_lies_outside_the_fit_is_said() -> None:
    inside = predict(FIT, QUESTION, [1, 200])
    assert inside.warnings == []
    beyond = predict(FIT, replace(QUESTION, traffic=Traffic(4000.0)), [512]).warnings
    assert beyond == [
        "512 rows: fitted on at most 221",
        "2048 positions in a step: fitted on at most 884",
        "a context of 4000 tokens: fitted on 300 to 300",
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"acceptance": (0.6, 0.7, 0.2)}, "acceptance: found 0.6,0.7,0.2, which rises at position 1"),
        ({"acceptance": (1.2, 0.7, 0.2)}, "acceptance: found 1.2; acceptance is a share"),
        ({"acceptance": (0.6, 0.4, -0.1)}, "acceptance: found -0.1; acceptance is a share"),
        ({"acceptance": (0.6, 0.4)}, r"acceptance: found 2 shares \(0.6,0.4\) for k = 3"),
        ({"draft": Draft(3, HEAD, draft_rate=0.0)}, "draft-rate: found 0; give a share above 0"),
    ],
)
def test_a_question_that_cannot_be_is_refused(change: dict[str, object], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        predict(FIT, replace(QUESTION, **change), [1])  # type: ignore[arg-type]


@pytest.mark.parametrize("concurrency", [[], [0.5], [1, 0]])
def test_requests_in_flight_are_at_least_one(concurrency: list[float]) -> None:
    with pytest.raises(UserError, match="concurrency: found"):
        predict(FIT, QUESTION, concurrency)


def test_a_million_tokens_by_hand() -> None:
    h100 = device("h100-sxm")
    # 10 rows, a token each, in 10 ms: 1000 tok/s; 3 dollars an hour are 3e9/3600/1e6 dollars per million at that pace
    plain = token_cost(h100, QUESTION, [10.0], [0.01], 0)
    assert plain.usd is not None
    assert plain.usd == pytest.approx([3 / 3600 / 1000 * 1e6])
    # at rest 100 W x 1 ms a token; weights once for ten tokens at 60 pJ a byte, and as many operations at 1 pJ
    rest = 100 * 1e-3 * 1e6
    weights = 2 * TARGET.matmul_parameters * 60e-12 / 10 * 1e6
    operations = 2 * TARGET.matmul_parameters * 1e-12 * 1e6
    cache = 500 * TARGET.kv_bytes_per_token * 60e-12 * 1e6
    assert plain.joules == pytest.approx([rest + weights + operations + cache], rel=0.01)


def test_drafts_cost_their_own_energy() -> None:
    h100 = device("h100-sxm")
    nothing = replace(QUESTION, acceptance=(0.0, 0.0, 0.0))
    plain = token_cost(h100, nothing, [100.0], [0.01], 0).joules[0]
    wasted = token_cost(h100, nothing, [100.0], [0.01], 3).joules[0]
    operations = 3 * 2 * TARGET.matmul_parameters * 1e-12 * 1e6
    assert wasted - plain > operations
    assert token_cost(replace(h100, usd_per_hour=None), nothing, [1.0], [0.01], 0).usd is None


def test_f11_distance_is_counted_in_doublings() -> None:
    def at(rows: float, context: float) -> float:
        return float(doublings(FIT, replace(QUESTION, traffic=Traffic(context)), np.array([rows]))[0])

    assert at(1, 300) == at(221, 600) == at(100, 150) == 0  # inside, or within a factor of two of its context
    assert at(442, 300) == pytest.approx(1)
    assert at(1, 2400) == pytest.approx(2)
    assert at(1, 37.5) == pytest.approx(2)
    assert at(884, 2400) == pytest.approx(2 + 2)


def test_f11_intervals_widen_with_the_root_of_the_doublings() -> None:
    def width(context: float, widening: Widening = FAR) -> float:
        found = predict(FIT, replace(QUESTION, traffic=Traffic(context)), [8], widening=widening)
        assert found.low[0] <= found.speed_up[0] <= found.high[0]
        return float(np.log(found.high[0] / found.low[0]))

    assert width(600) == pytest.approx(0, abs=1e-12)
    # 90% of a normal: 1.645 either side
    assert width(1200) == pytest.approx(2 * 1.645 * 0.1, rel=0.02)
    assert width(600 * 16) == pytest.approx(2 * width(1200), rel=1e-6)
    assert width(600, Widening(0.1, carried=4.0)) == pytest.approx(2 * width(1200), rel=1e-6)


def test_f11_the_crossover_widens_too_where_it_lies_outside() -> None:
    near = replace(FIT, places=(Place(1, 1, 500), Place(16, 16, 500)))
    exact, wide = (predict(near, QUESTION, [1], widening=Widening(each)).crossover for each in (0.0, 0.05))
    assert exact.low == exact.high == pytest.approx(exact.value)
    assert wide.value == exact.value
    assert (wide.low or 0) < (exact.value or 0) < (wide.high or 0)


def test_f11_the_answer_says_by_how_much() -> None:
    said = predict(FIT, replace(QUESTION, traffic=Traffic(2400.0)), [8], widening=Widening(0.1)).warnings
    assert said[-1].startswith("2.0 doublings from what was fitted: the interval is wider by 14% (one standard dev")
    assert predict(FIT, QUESTION, [8], widening=Widening(0.1)).warnings == []


def test_values_of_chance_are_the_same_each_time_and_normal() -> None:
    values = normals(200)
    assert values.tolist() == normals(200).tolist()
    assert values.mean() == pytest.approx(0, abs=1e-9)
    assert values.std() == pytest.approx(1, abs=0.02)
    assert np.quantile(values, 0.95) == pytest.approx(1.645, abs=0.03)
