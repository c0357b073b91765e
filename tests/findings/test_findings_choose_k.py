from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speclab import lab as labs
from speclab.findings.choose_k import curves, rows, worth_measuring
from speclab.findings.intervals import DRAWS
from speclab.findings.tokens_per_step_by_k import Drafter, bias, drafters, tokens_per_step_by_k

LOOK_UP = Drafter("ngram-k8", {2: "ngram-k2", 8: "ngram-k8"}, grows=False)
HEAD = Drafter("eagle3-k3", {3: "eagle3-k3"}, grows=True)


def replays(arm: str, by_k: dict[int, tuple[int, float, int]], prompts: int = 12) -> pd.DataFrame:
    """Rows as `speclab.metrics.replay.by_k` makes them: (tokens, steps, cut tokens) by k, alike for all prompts."""
    rows = [
        {
            **{"arm": arm, "workload": "chat", "concurrency": 1, "repeat": 0, "source": "simulated (h100-sxm)"},
            **{"prompt_id": f"chat/{index:02}", "k": k, "tokens": tokens, "steps": steps, "cut_tokens": cut},
        }
        for index in range(prompts)
        for k, (tokens, steps, cut) in by_k.items()
    ]
    return pd.DataFrame(rows)


EAGLE_REPLAYS = replays("eagle3-k3", {1: (240, 140, 170), 2: (240, 110, 210), 3: (240, 100, 240)})


def test_arms_that_differ_in_k_alone_share_a_drafter_and_forced_ones_have_none() -> None:
    lab = labs.load("lab09")
    found = drafters([lab.arm(name) for name in lab.arms])
    assert [drafter.name for drafter in found] == ["draft-1b-k3", "eagle3-k3", "ngram-k8"]
    assert found[2].arms == {2: "ngram-k2", 8: "ngram-k8"}
    assert [drafter.grows for drafter in found] == [True, True, False]
    cpu = labs.load("cpu-smollm2")
    assert "eagle3-forced" not in [drafter.name for drafter in drafters([cpu.arm(name) for name in cpu.arms])]


def no_draws(finding: str, **where: object) -> None:
    return None


def step_times(standing: str = "ok", **ms: float) -> pd.DataFrame:
    """Findings: the step time of each arm at one request in flight on chat."""
    return pd.DataFrame(
        [
            {
                **{"finding": "step_time", "arm": arm.replace("_", "-"), "workload": "chat", "concurrency": 1.0},
                **{"value": value, "status": standing, "source": "simulated (h100-sxm)"},
            }
            for arm, value in ms.items()
        ]
    )


def test_one_arm_of_a_network_costs_a_line_from_the_baseline() -> None:
    table = curves(step_times(baseline=6.0, eagle3_k3=7.2), EAGLE_REPLAYS, HEAD, no_draws).set_index("k")
    assert table["step_time"].tolist() == pytest.approx([6.0, 6.4, 6.8, 7.2, 7.6])
    assert table["tokens_per_step"].tolist()[:4] == pytest.approx([1.0, 240 / 140, 240 / 110, 2.4])
    assert table["ms_per_token"].tolist()[:4] == pytest.approx([6.0, 6.4 * 140 / 240, 6.8 * 110 / 240, 3.0])
    assert table["how"].tolist() == ["off", "replayed", "replayed", "measured", "one beyond"]
    assert table.index[table["chosen"]].tolist() == [3]
    assert table["cost"].unique().tolist() == ["k = 3 alone, all that it adds grows with k"]


def test_two_arms_show_the_part_of_the_cost_that_does_not_grow() -> None:
    rows = [replays("ngram-k2", {1: (120, 105, 108), 2: (120, 100, 120)})]
    rows.append(replays("ngram-k8", {k: (120, 102 - k, 110 + k) for k in range(1, 9)}))
    found = step_times(baseline=6.0, ngram_k2=7.4, ngram_k8=8.0)
    table = curves(found, pd.concat(rows), LOOK_UP, no_draws).set_index("k")
    assert table["step_time"].tolist() == pytest.approx([6.0, *(7.2 + 0.1 * k for k in range(1, 10))])
    assert table["cost"].unique().tolist() == ["line through k = 2, 8"]
    # ms per token: 7.3 x 105/120 = 6.39, 7.4 x 100/120 = 6.17, 7.5 x 99/120 = 6.19, 7.6 x 98/120 = 6.21, ...
    assert table.index[table["chosen"]].tolist() == [2]
    assert table.loc[0, "over_best"] == pytest.approx(6.0 / (7.4 * 100 / 120)), "no k pays for the look-up"
    assert worth_measuring(table.reset_index()) == []


def test_a_longer_draft_is_never_taken_to_be_cheaper() -> None:
    rows = [replays("ngram-k2", {1: (110, 100, 108), 2: (110, 98, 110)})]
    rows.append(replays("ngram-k8", {k: (120, 102 - k, 110 + k) for k in range(1, 9)}))
    found = step_times(baseline=6.0, ngram_k2=8.0, ngram_k8=7.4)
    table = curves(found, pd.concat(rows), LOOK_UP, no_draws).set_index("k")
    assert table.loc[1:, "step_time"].tolist() == pytest.approx([7.7] * 9)
    assert table["cost"].iloc[0].endswith("fell: taken as flat")


def test_a_look_up_with_one_k_is_taken_to_cost_the_same_at_each() -> None:
    rows = replays("ngram-k8", {k: (200, 104 - k, 110 + k) for k in range(1, 9)})
    alone = Drafter("ngram-k8", {8: "ngram-k8"}, grows=False)
    table = curves(step_times(baseline=6.0, ngram_k8=8.0), rows, alone, no_draws).set_index("k")
    assert table.loc[1:, "step_time"].tolist() == pytest.approx([8.0] * 9)


def test_ties_within_the_noise_go_to_the_smaller_k() -> None:
    """k=2 is slower than k=3 on average by less than the prompts differ."""
    rng = np.random.default_rng(3)
    rows = EAGLE_REPLAYS.astype({"steps": float})
    at_two = rows["k"] == 2
    rows.loc[at_two, "steps"] = 107.5 + rng.normal(0, 6, at_two.sum())
    table = curves(step_times(baseline=6.0, eagle3_k3=7.2), rows, HEAD, no_draws).set_index("k")
    assert table.loc[:3, "ms_per_token"].idxmin() == 3
    assert table.loc[2, "over_best"] > 1 > table.loc[2, "over_best_low"]
    assert table.index[table["chosen"]].tolist() == [2]


def test_the_noise_of_the_step_time_is_in_the_interval() -> None:
    rng = np.random.default_rng(5)
    noise = {arm: rng.normal(time, 0.2, DRAWS) for arm, time in (("baseline", 6.0), ("eagle3-k3", 7.2))}
    found = step_times(baseline=6.0, eagle3_k3=7.2)
    table = curves(found, EAGLE_REPLAYS, HEAD, lambda finding, arm, **where: noise[arm]).set_index("k")
    # prompts are all alike, so 95% lie within 1.96 x 0.2 ms of the step time over 2.4 tokens
    assert table.loc[3, ["low", "high"]].tolist() == pytest.approx([3 - 0.392 / 2.4, 3 + 0.392 / 2.4], abs=0.015)
    alone = curves(found, EAGLE_REPLAYS, HEAD, no_draws).set_index("k")
    assert alone.loc[3, "low"] == alone.loc[3, "high"] == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (step_times("failed check", baseline=6.0, eagle3_k3=7.2), "failed check"),
        (step_times(eagle3_k3=7.2), "not resolved"),
        (step_times(baseline=6.0), "not resolved"),
    ],
)
def test_without_step_times_that_passed_nothing_is_chosen(found: pd.DataFrame, status: str) -> None:
    table = curves(found, EAGLE_REPLAYS, HEAD, no_draws)
    assert table["status"].unique().tolist() == [status]
    assert not table["chosen"].any()
    assert table["tokens_per_step"].notna().all(), "what comes back is known all the same"
    assert worth_measuring(table) == []


def test_an_arm_that_has_no_answers_has_no_curve() -> None:
    found = step_times(baseline=6.0, eagle3_k3=7.2)
    assert curves(found, EAGLE_REPLAYS.iloc[:0], HEAD, no_draws).empty
    assert curves(found, pd.DataFrame(), HEAD, no_draws).empty
    assert tokens_per_step_by_k(EAGLE_REPLAYS, LOOK_UP) is None


def test_the_biases_are_taken_over_the_prompts_that_both_answered() -> None:
    longer = replays("ngram-k8", {2: (90, 40, 60), 8: (90, 30, 90)}, prompts=3)
    shorter = replays("ngram-k2", {1: (80, 50, 60), 2: (80, 32, 80)}, prompts=2)
    table = bias(pd.concat([longer, shorter]), LOOK_UP)
    assert table[["from_k", "k", "prompts"]].to_numpy().tolist() == [[8, 2, 2]]
    row = table.iloc[0]
    assert (row["measured"], row["replayed"], row["cut"]) == pytest.approx((80 / 32, 90 / 40, 60 / 30))
    assert (row["replay_bias"], row["cut_bias"]) == pytest.approx((-0.1, -0.2))


def test_the_reading_that_is_nearer_to_a_shorter_arm_is_taken() -> None:
    longer = dict.fromkeys(range(1, 8), (90, 40.0, 60)) | {8: (90, 30.0, 90)}
    for measured_steps, reading in ((35, "replayed"), (46, "cut")):  # 90/40 = 2.25 and 60/30 = 2 against 80/steps
        shorter = replays("ngram-k2", {1: (80, 50, 60), 2: (80, measured_steps, 80)})
        by_k = tokens_per_step_by_k(pd.concat([replays("ngram-k8", longer), shorter]), LOOK_UP)
        assert by_k is not None
        assert by_k.reading == reading
        assert by_k.tokens_per_step[0, 3] == pytest.approx(90 / 40 if reading == "replayed" else 60 / 30)


@pytest.mark.parametrize(("step_time", "wanted"), [(6.3, [4]), (12.0, [1])])
def test_what_is_worth_measuring_next(step_time: float, wanted: list[int]) -> None:
    """A cheap draft wants to be longer; one that adds 2 ms a position is best at k=1, which nobody ran."""
    rows = replays("eagle3-k3", {1: (240, 126, 180), 2: (240, 111, 205), 3: (240, 100, 240)})
    found = step_times(baseline=6.0, eagle3_k3=step_time)
    assert worth_measuring(curves(found, rows, HEAD, no_draws)) == wanted


def test_the_curves_are_findings_too() -> None:
    found = rows(curves(step_times(baseline=6.0, eagle3_k3=7.2), EAGLE_REPLAYS, HEAD, no_draws))
    by = found.set_index(["finding", "position"])
    assert by.loc[("tokens_per_step_at_k", 3), ["value", "n", "status"]].tolist() == [2.4, 12, "ok"]
    assert by.loc[("ms_per_token_at_k", 3), "value"] == pytest.approx(3.0)
    best = found[found["finding"] == "best_k"].iloc[0]
    assert (best["value"], best["arm"], best["concurrency"]) == (3, "eagle3-k3", 1.0)
    assert len(found) == 3 + 3 + 1
    failed = rows(curves(step_times("failed check", baseline=6.0, eagle3_k3=7.2), EAGLE_REPLAYS, HEAD, no_draws))
    assert set(failed["finding"]) == {"tokens_per_step_at_k", "ms_per_token_at_k"}
    assert failed.loc[failed["finding"] == "ms_per_token_at_k", ["value", "low", "high"]].isna().all(axis=None)
    assert rows(curves(step_times(baseline=6.0, eagle3_k3=7.2), pd.DataFrame(), HEAD, no_draws)).empty


def test_f12_an_arm_with_a_schedule_is_no_drafter_of_one_k() -> None:
    lab = labs.load("lab09")
    arm = lab.arm("ngram-k8")
    assert arm.speculation is not None
    ranges = {"num_speculative_tokens_per_batch_size": ((1, 32, 8), (33, 256, 0))}
    scheduled = arm.model_copy(update={"speculation": arm.speculation.model_copy(update=ranges)})
    assert drafters([scheduled]) == []
    assert [each.name for each in drafters([arm])] == ["ngram-k8"]
