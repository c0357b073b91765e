"""Forecasts against closed forms, and against the intervals that findings then report."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np
import pandas as pd
import pytest
from known_pilots import made_cell, pilot_of

from speclab.budget import forecast
from speclab.budget.allocate import Portion, half_width, student
from speclab.budget.components import Estimate
from speclab.budget.estimate import pilot
from speclab.budget.pilot import Pilot
from speclab.budget.spend import Spending
from speclab.findings.crossover import crossover
from speclab.interval_coverage.fast_lab import ARM, FastLab
from speclab.interval_coverage.held import intervals
from speclab.lab import BASELINE, Phases


def spent(of: Pilot, repeats: int = 4, window_s: float = 50.0) -> Spending:
    shares = {
        where: Portion(dict.fromkeys((cell.arm for cell in cells.values()), window_s), 0.0)
        for where, cells in of.by_place.items()
    }
    return Spending(of, 0.05, repeats, shares)


def test_a_half_width_by_hand() -> None:
    (row,) = forecast.speed_ups(spent(pilot_of(made_cell(texts=0.04, machine=0.001, log_speed=np.log(1.2)))))
    # all 40 prompts are served in 200 s at two a second: 0.04/40 + 0.02/200 + 0.001/4, and 0.02/200 of the baseline
    variance = 0.001 + 0.0001 + 0.00025 + 0.0001
    assert row.half_width == pytest.approx(np.sinh(student(4) * np.sqrt(variance)))
    assert row.value == pytest.approx(1.2)
    assert row.low == row.high == pytest.approx(row.half_width)  # nothing about it is in doubt


def test_a_forecast_from_rough_variances_is_a_range() -> None:
    doubtful = pilot_of(made_cell(doubt=0.5), made_cell(BASELINE, doubt=0.5))
    (row,) = forecast.speed_ups(spent(doubtful))
    assert 0.7 < row.low / row.half_width < 0.95
    assert 1.1 < row.high / row.half_width < 2.5


def test_the_range_is_that_of_a_chi_square() -> None:
    # a variance from ten degrees of freedom: 10 / 15.99 and 10 / 4.865 of it (tables, 10% and 90%)
    low, high = forecast.likely(Estimate(1.0, np.sqrt(2 / 10)))
    assert (low, high) == (pytest.approx(10 / 15.987, rel=1e-3), pytest.approx(10 / 4.865, rel=1e-3))


def test_a_chance_to_exclude_1() -> None:
    sure, none = (forecast.speed_ups(spent(pilot_of(made_cell(log_speed=np.log(value)))))[0] for value in (1.5, 1.0))
    assert sure.excludes_1 > 0.999
    # at 1 the next measurement lies beside the pilot's by more than its own interval now and then: 2 P(Z > edge / wide)
    assert 0.2 < none.excludes_1 < 0.6


def test_a_crossing_between_two_sure_points_will_be_closed_and_the_real_code_agrees() -> None:
    speeds = {1: 0.3, 4: 0.1, 16: -0.2}
    of = pilot_of(*(made_cell(concurrency=at, log_speed=log, steps=0.001) for at, log in speeds.items()))
    (curve,) = forecast.crossings(spent(of))
    assert curve.closed > 0.99
    assert curve.not_reached == 0
    errors = [np.log1p(row.half_width) / student(4) for row in forecast.speed_ups(spent(of))]
    normal = np.random.default_rng(0).standard_normal((2000, 3))
    values = np.exp(list(speeds.values()))
    made = crossover(list(speeds), values, (), values * np.exp(normal * errors))
    assert made.status == "ok"
    assert made.low is not None
    assert made.high is not None


def test_a_curve_below_1_will_not_be_reached_and_one_at_1_stays_open() -> None:
    below = pilot_of(*(made_cell(concurrency=at, log_speed=-0.4) for at in (1, 4)))
    at_one = pilot_of(*(made_cell(concurrency=at, log_speed=0.0) for at in (1, 4)))
    assert forecast.crossings(spent(below))[0].not_reached > 0.99
    open_ended = forecast.crossings(spent(at_one))[0]
    assert open_ended.closed < 0.3
    assert open_ended.not_reached < 0.3


def test_a_bound_of_flatness_narrows_with_the_root_of_the_prompts() -> None:
    of = pilot_of(*(made_cell(concurrency=at) for at in (1, 16)))
    trend = {"finding": "acceptance_trend", "arm": "arm", "workload": "chat", "status": "ok", "n": 10.0}
    rows = pd.DataFrame([trend | {"low": -0.05, "high": 0.05}])
    (flat,) = forecast.flatness(spent(of), rows)
    assert (flat.prompts, flat.pilot_prompts) == (40, 10)
    own = (np.log1p(0.05) - np.log1p(-0.05)) / 2
    # Student's factors are 2.023 and 2.262
    assert np.log1p(flat.bound) == pytest.approx(own * 0.5 * 2.0227 / 2.2622, rel=1e-3)


PILOT = FastLab(
    concurrencies=(2, 8), repeats=4, window_s=10.0, drift=0.02, jitter=0.2, remembers_s=0.05, steps_per_answer=15
)
"""Steps and answers are short beside a block of two seconds, as they are beside the blocks of a real window."""

BLOCKS_KEPT = 10

AGREES = 0.3
"""How near a forecast half-width must come; a reported one from three repeats scatters by a quarter itself."""


def of_fast_lab(seed: int) -> Pilot:
    cells, blocks = PILOT.tables(seed, BLOCKS_KEPT)
    length = Phases(length_s=PILOT.window_s + 2, drop_first_s=1, drop_last_s=1)
    return pilot(cells, blocks, pd.DataFrame(), {"chat": 40}, length)


@pytest.fixture(scope="module")
def pilots() -> list[Pilot]:
    return [of_fast_lab(seed) for seed in range(16)]


def half_widths(pilots: list[Pilot], repeats: int, window_s: float, place: int) -> list[forecast.SpeedUp]:
    return [forecast.speed_ups(spent(each, repeats, window_s))[place] for each in pilots]


def test_components_of_a_lab_in_closed_form(pilots: list[Pilot]) -> None:
    def estimates(arm: str, concurrency: int, part: str) -> np.ndarray:
        return np.array([getattr(each.by_place["chat", concurrency][arm], part).value for each in pilots])

    for concurrency in PILOT.concurrencies:
        # step times of an autoregressive series: variance x (1 + m) / (1 - m) for each step
        step_s = (PILOT.baseline_ms[0] + PILOT.baseline_ms[1] * concurrency) / 1e3
        memory = np.exp(-step_s / PILOT.remembers_s)
        truth = PILOT.jitter**2 * step_s * (1 + memory) / (1 - memory)
        assert np.mean(estimates(BASELINE, concurrency, "steps")) == pytest.approx(truth, rel=0.15)
    for arm in (BASELINE, ARM):
        made = estimates(arm, PILOT.concurrencies[0], "machine")
        # they scatter by what three repeats can tell, around the truth
        assert abs(made.mean() - PILOT.drift**2) < 3 * made.std(ddof=1) / np.sqrt(len(made))


@pytest.mark.parametrize(("repeats", "window_s"), [(3, 10.0), (6, 10.0)])
def test_a_forecast_agrees_with_the_interval_that_findings_then_report(
    pilots: list[Pilot], repeats: int, window_s: float
) -> None:
    later = replace(PILOT, repeats=repeats, window_s=window_s)
    rows = intervals(later, range(100, 116), BLOCKS_KEPT)
    rows = rows[rows["finding"] == "speed_up"]
    reported = ((rows["high"] - rows["low"]) / 2 / rows["value"]).groupby(rows["concurrency"]).median()
    for place, concurrency in enumerate(PILOT.concurrencies):
        forecasts = median(row.half_width for row in half_widths(pilots, repeats, window_s, place))
        assert forecasts == pytest.approx(reported[concurrency], rel=AGREES)


def test_forecasts_are_of_what_labs_really_scatter_by(pilots: list[Pilot]) -> None:
    later = replace(PILOT, repeats=6)
    truth = np.log(later.true_speed_up)
    errors = []
    for seed in range(200, 240):
        cells, _ = later.tables(seed, 1)
        speeds = cells.groupby(["concurrency", "arm"])["system_throughput"].mean().unstack()
        errors.append((np.log(speeds[ARM] / speeds[BASELINE]) - truth).to_numpy())
    for place, mean_square in enumerate(np.mean(np.square(errors), axis=0)):
        scatter = half_width(float(mean_square), later.repeats)
        rows = half_widths(pilots, later.repeats, later.window_s, place)
        assert median(row.half_width for row in rows) == pytest.approx(scatter, rel=AGREES)
        assert np.mean([row.low <= scatter <= row.high for row in rows]) > 0.6  # of 80%, with 16 pilots
