from __future__ import annotations

import pandas as pd
import pytest

from speclab.errors import UserError
from speclab.predict.parameters import CPU_135M
from speclab.predict.step_time import NO_DRAFT, Draft, ModelOptions, step_s
from speclab.predict.traffic import Traffic
from speclab.replications.validation.measured import Setting, calibrated
from speclab.roofline.transformers import transformer

TARGET, HEAD = transformer("smollm2-135m"), transformer("eagle3-head-135m")
TRUE = CPU_135M.replaced(overhead_s=25e-3, flop_per_s=6e11)
TRAFFIC = {"chat": Traffic(90.0, 45.0, 90.0), "revision": Traffic(290.0, 246.0, 82.0)}
EAGER = ModelOptions(eager=True)
SETTING = Setting(TARGET, {"head": (3, HEAD), "ngram": (2, None)}, TRAFFIC, CPU_135M, "head", "chat", (1, 16), EAGER)
BRINGS = {"baseline": (1.0, 1.0), "head": (2.5, 1.0), "ngram": (1.2, 0.2)}


def cells(leave_out: str = "", failed: tuple[str, ...] = ()) -> pd.DataFrame:
    """A lab whose steps take what the model says with other parameters than the fit begins with."""
    rows = []
    for arm, (tokens, draft_rate) in BRINGS.items():
        draft = NO_DRAFT if arm == "baseline" else Draft(*SETTING.drafters[arm], draft_rate)
        for workload, traffic in TRAFFIC.items():
            for at in (1, 4, 16):
                seconds = float(step_s(TRUE, TARGET, at, traffic, draft, tokens, EAGER))
                rows.append(
                    {"arm": arm, "workload": workload, "concurrency": at, "repeat": 0, "status": "ok",
                     "step_time": 1e3 * seconds, "tokens_per_step": tokens, "draft_coverage": draft_rate,
                     "failed_checks": "stationarity" if f"{arm} {workload} {at}" in failed else None}
                )  # fmt: skip
    table = pd.DataFrame(rows)
    return table[table["arm"] != leave_out]


def test_two_concurrencies_of_two_arms_give_every_other_place() -> None:
    model = calibrated(cells(), SETTING)
    for name in ("overhead_s", "flop_per_s"):
        assert getattr(model.calibration.parameters, name) == pytest.approx(getattr(TRUE, name), rel=0.01)
    assert model.calibration.parameters.launch_s == CPU_135M.launch_s, "held"
    for arm, workload, at in (("head", "revision", 4), ("ngram", "chat", 16)):
        draft = Draft(*SETTING.drafters[arm], BRINGS[arm][1])
        plain = step_s(TRUE, TARGET, at, TRAFFIC[workload], options=EAGER)
        with_drafts = step_s(TRUE, TARGET, at, TRAFFIC[workload], draft, BRINGS[arm][0], EAGER)
        expected = BRINGS[arm][0] * float(plain / with_drafts)
        assert float(model.speed_up(arm, workload, at)) == pytest.approx(expected, rel=0.01)


def test_cells_that_failed_a_check_are_not_seen() -> None:
    model = calibrated(cells(failed=("baseline chat 16",)), SETTING)
    assert "baseline, chat, 16 in flight" not in model.calibration.residuals
    assert "baseline, revision, 16 in flight" in model.calibration.residuals
    assert not [label for label in model.calibration.residuals if "ngram" in label or "4 in flight" in label]


def test_a_lab_without_a_baseline_is_refused() -> None:
    with pytest.raises(
        UserError, match=r"no cell of the arm 'baseline' passed its checks \(arms that did: head, ngram\)"
    ):
        calibrated(cells(leave_out="baseline"), SETTING)
