from __future__ import annotations

import numpy as np
import pytest

from speclab.errors import UserError
from speclab.predict.fit import Measured, Place, fit
from speclab.predict.parameters import H100_8B, MEANINGS, Parameters
from speclab.predict.step_time import step_s
from speclab.predict.traffic import Traffic
from speclab.roofline.transformers import transformer

TARGET, TRAFFIC = transformer("llama-3-8b"), Traffic(300.0)
TRUE = H100_8B.replaced(byte_per_s=2.5e12, flop_per_s=6e14, overhead_s=0.7e-3)


def measured(rows: int, value: float | None = None) -> Measured:
    def model(parameters: Parameters) -> float:
        return float(step_s(parameters, TARGET, rows, TRAFFIC))

    return Measured(f"{rows} rows", model(TRUE) if value is None else value, model, Place(rows, rows, 300))


def test_exact_figures_give_the_parameters_back() -> None:
    found = fit(
        [measured(rows) for rows in (1, 64, 512, 2048)], H100_8B, ["byte_per_s", "flop_per_s", "overhead_s"], "x"
    )
    for name in ("byte_per_s", "flop_per_s", "overhead_s"):
        assert getattr(found.parameters, name) == pytest.approx(getattr(TRUE, name), rel=1e-3)
    assert max(map(abs, found.residuals.values())) < 1e-5
    assert found.parameters.smoothing == H100_8B.smoothing


def test_more_parameters_than_figures_are_refused() -> None:
    with pytest.raises(UserError, match=r"2 measured figures cannot carry 3 parameters .*; hold 1 of them"):
        fit([measured(1), measured(64)], H100_8B, ["byte_per_s", "flop_per_s", "overhead_s"], "x")


def test_parameters_that_the_figures_do_not_tell_apart_are_named() -> None:
    # at one row only, overhead and bandwidth are one sum
    same = [measured(1, value) for value in (6.0e-3, 6.1e-3, 6.2e-3)]
    with pytest.raises(UserError, match=r"cannot tell overhead_s and byte_per_s apart|byte_per_s and overhead_s"):
        fit(same, H100_8B, ["overhead_s", "byte_per_s"], "x")


def test_a_parameter_without_a_say_is_named() -> None:
    with pytest.raises(UserError, match="none of the 2 measured figures depends on launch_s"):
        fit([measured(1), measured(64)], H100_8B, ["launch_s"], "x")


@pytest.mark.parametrize(
    ("figures", "free", "expected"),
    [
        ([measured(1)], ["speed"], "unknown parameter 'speed'; there are overhead_s"),
        ([measured(1, -1.0)], ["byte_per_s"], "1 rows has no value above 0"),
        ([measured(1, float("nan"))], ["byte_per_s"], "1 rows has no value above 0"),
        ([measured(1)], ["row_s"], "row_s begins at 0"),
    ],
)
def test_mistakes_are_one_sentence(figures: list[Measured], free: list[str], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        fit(figures, H100_8B, free, "x")


def test_draws_are_as_uncertain_as_the_fit_says() -> None:
    found = fit([measured(rows) for rows in (1, 64, 512, 2048)], H100_8B, ["byte_per_s", "flop_per_s"], "x")
    drawn = found.draws(2000, seed=3)
    for name in ("flop_per_s", "smoothing"):
        spread = np.std(np.log([getattr(each, name) for each in drawn]))
        assert spread == pytest.approx(found.relative_error(name), rel=0.1)
    assert found.draws(3) == found.draws(3)
    # bandwidth held at half its plausible range to either side would be known worse than it is fitted here
    assert found.relative_error("byte_per_s") < MEANINGS["byte_per_s"].spread(1.0)


def test_what_is_held_makes_what_is_fitted_uncertain() -> None:
    figures = [measured(rows) for rows in (1, 64, 512, 2048)]
    free = ["byte_per_s", "flop_per_s"]
    unsure = fit(figures, H100_8B, free, "x")
    sure = fit(figures, H100_8B, free, "x", exact=[name for name in MEANINGS if name not in free])
    assert sure.held == ()
    assert unsure.relative_error("flop_per_s") > 2 * sure.relative_error("flop_per_s")
    # 1% a figure, four figures: a rate is known to about a percent
    assert 0.002 < sure.relative_error("byte_per_s") < 0.03


def test_every_parameter_has_a_meaning_and_a_range() -> None:
    assert set(MEANINGS) == set(Parameters.model_fields)
    assert all(0 < each.low < each.high for each in MEANINGS.values())
    start = H100_8B.model_dump()
    assert all(MEANINGS[name].low <= value <= MEANINGS[name].high for name, value in start.items() if value)
