"""The page's sweep, run whole on H100: sixty cells at whole percent, and the numbers behind some of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speclab.errors import UserError
from speclab.replications.chapter10 import capacity_over_seeds, compared, gaps, points, sweep
from speclab.replications.chapter10.capacity import CHARGED
from speclab.replications.chapter10.fleet.capacity import LoadTest
from speclab.replications.chapter10.fleet.metrics import METRICS
from speclab.replications.chapter10.presets import REFERENCE_RATE, SEED, WORKLOADS
from speclab.replications.chapter10.searching import goodput
from speclab.replications.chapter10.speculation_presets import assumed, preset_fleet

# inference-tradeoffs-explained, chapter 10: percent of change from the baseline on H100, by preset and workload
PRINTED = {
    "mtp": {
        "chat": "+27 -21 -8 +1 -51 -43",
        "coding-agent": "+29 -23 -17 +6 -40 +5",
        "offline-batch": "+16 -14 -2 +4 -1 +39",
        "long-rag": "+39 -28 -15 +9 -42 +2",
        "voice": "+142 -59 -42 +5 -45 +6",
    },
    "draft-1b": {
        "chat": "+25 -20 -5 +14 -55 -49",
        "coding-agent": "+41 -29 -21 +3 -39 +5",
        "offline-batch": "+14 -12 -0 +9 -9 +177",
        "long-rag": "+45 -31 -16 +2 -43 +3",
        "voice": "+174 -64 -45 +6 -48 +5",
    },
}


@pytest.fixture(scope="module")
def h100() -> pd.DataFrame:
    return points(["h100-sxm"])


@pytest.mark.parametrize("preset", PRINTED)
def test_sixty_cells_of_the_page(h100: pd.DataFrame, preset: str) -> None:
    table = compared(h100).query("lever == @preset").pivot(index="workload", columns="metric", values="change")
    shown = {
        str(workload): " ".join(f"{100 * row[metric]:+.0f}" for metric in METRICS) for workload, row in table.iterrows()
    }
    assert shown == PRINTED[preset]


@pytest.mark.parametrize(
    ("workload", "preset", "printed"),
    # capacity, goodput, $/M tok, J/tok, TTFT p99, TPOT p99, ITL p99, tokens per pass, draft share
    [
        ("chat", "baseline", "3.87500 1.419518 1.842352 1.153252 .355510 .033303 .217195"),
        ("chat", "mtp", "4.84375 1.802049 1.454688 1.066218 .358190 .016310 .124606 2.52326 4.65%"),
        ("chat", "draft-1b", "4.84375 1.778660 1.473153 1.091544 .405277 .015029 .111542 2.76017 4.38%"),
        ("voice", "baseline", "0.43945 .321530 54.223428 15.781289 .213803 .027531 .018523"),
        ("voice", "mtp", "1.07422 .778165 22.386416 9.190929 .224165 .015173 .019551 2.46624 4.70%"),
    ],
)
def test_absolute_numbers_of_the_source(h100: pd.DataFrame, workload: str, preset: str, printed: str) -> None:
    row = h100.query("workload == @workload and lever == @preset").iloc[0]
    shown = [f"{row.capacity_rate:.5f}", *(f"{row[metric]:.6f}" for metric in METRICS)]
    if preset != "baseline":
        shown += [f"{row.tokens_per_pass:.5f}", f"{row.draft_share:.2%}"]
    assert [number.lstrip("0") for number in shown] == [number.lstrip("0") for number in printed.split()]


def test_marks_are_those_of_the_page(h100: pd.DataFrame) -> None:
    marked = compared(h100).set_index(["workload", "lever", "metric"])["mark"]
    assert marked["voice", "mtp", "goodput_per_gpu"] == "E alpha"
    assert marked["voice", "draft-1b", "usd_per_mtok"] == "E $ alpha"
    assert marked["voice", "mtp", "ttft_p99_s"] == "alpha"
    assert marked["chat", "mtp", "usd_per_mtok"] == "$ alpha"
    assert marked["chat", "baseline", "usd_per_mtok"] == "$"
    assert (marked.str.contains("E")).sum() == 6


def test_verdicts_and_arrows(h100: pd.DataFrame) -> None:
    found = compared(h100).set_index(["workload", "lever", "metric"])
    cell = found.loc[("offline-batch", "mtp", "tpot_p99_s")]
    assert (cell.verdict, cell["size"]) == ("same", 0)
    cell = found.loc[("offline-batch", "draft-1b", "itl_p99_s")]
    assert (cell.verdict, cell["size"]) == ("worse", 3)
    cell = found.loc[("chat", "mtp", "usd_per_mtok")]
    assert (cell.verdict, cell["size"]) == ("better", 2)


def test_looser_slos_are_met_more_often(h100: pd.DataFrame) -> None:
    kept = h100[["slo_0_5x", "slo_1x", "slo_2x", "slo_4x"]].to_numpy()
    assert (np.diff(kept, axis=1) >= 0).all()
    online = h100[h100.workload != "offline-batch"]
    assert (online.slo_1x >= 0.9).all()  # the reference load is half of what is carried


def test_the_reference_load_is_half_of_what_the_plain_fleet_carries() -> None:
    found = LoadTest(preset_fleet("h100-sxm", "baseline", "voice"), WORKLOADS["voice"], SEED).capacity(1.0)
    assert found.rate == 2 * REFERENCE_RATE["voice"]


@pytest.mark.parametrize(("workload", "free", "charged"), [("chat", 0.25, 0.15), ("voice", 1.74, 1.09)])
def test_a_draft_model_gains_less_once_it_is_charged(
    h100: pd.DataFrame, workload: str, free: float, charged: float
) -> None:
    found = h100.query("workload == @workload").set_index("lever")["goodput_per_gpu"]
    plain, drafted = found["baseline"], found["draft-1b"]
    assert drafted / plain - 1 == pytest.approx(free, abs=0.005)
    paid = goodput("h100-sxm", workload, "draft-1b", SEED, CHARGED["both"])
    assert paid / plain - 1 == pytest.approx(charged, abs=0.005)


def test_stalls_of_the_offline_batch_are_the_drafter_s_memory() -> None:
    found = gaps().set_index(["lever", "drafter_memory"])
    assert set(found.gaps) == {91_061}
    assert [found.stalls[preset, "charged"] for preset in ("baseline", "mtp", "draft-1b")] == [1044, 2379, 4014]
    assert (found.longest_pass_s < 0.15).all()  # so that a gap above it holds a prompt
    for preset in ("mtp", "draft-1b"):
        charged, free = found.loc[(preset, "charged")], found.loc[(preset, "free")]
        assert free.stalls < 1.2 * 1044
        assert free.admitted_late == found.admitted_late["baseline", "charged"] < charged.admitted_late
        assert free.itl_p99_s < charged.itl_p99_s


@pytest.mark.parametrize(("preset", "workload", "tokens"), [
    ("eagle3", "chat", 2.694), ("eagle3", "coding-agent", 3.112),  # published lengths
    ("ngram", "chat", 1 + 0.15 * 1.00), ("ngram", "coding-agent", 1 + 0.43 * 3.4),  # on the passes with a draft
])  # fmt: skip
def test_presets_beside_the_page_s_rest_on_what_lab_9_published(preset: str, workload: str, tokens: float) -> None:
    found = assumed(preset, workload)
    assert found.speculation is not None
    assert found.speculation.tokens_per_pass == pytest.approx(tokens)
    assert "Lab 9" in found.source


def test_presets_of_our_own_run() -> None:
    found = sweep(["h100-sxm"], ["offline-batch"], ["eagle3", "ngram", "mtp-cut-off"], workers=1)
    change = found.query("metric == 'goodput_per_gpu'").set_index("lever")["change"]
    assert list(change.index) == ["eagle3", "ngram", "mtp-cut-off"]  # the baseline was run, and left out
    assert change["eagle3"] > 0.161 > change["mtp-cut-off"] > 0.05  # the page's MTP head gains 16.1%
    assert abs(change["ngram"]) < 0.02


def test_capacity_over_seeds_has_an_interval_around_the_mean() -> None:
    found = capacity_over_seeds(workloads=["offline-batch"], presets=["mtp"], seeds=(1, 2, 3), workers=1)
    assert found[["lever", "metric"]].to_numpy().tolist() == [
        ["baseline", "goodput_per_gpu"], ["mtp", "goodput_per_gpu"], ["mtp", "change"],
    ]  # fmt: skip
    row = found.iloc[2]
    assert row.low < row.least < row["mean"] < row.most < row.high
    # Student's t for two degrees of freedom is 4.303
    runs = [goodput("h100-sxm", "offline-batch", "mtp", seed, CHARGED["none"]) for seed in (1, 2, 3)]
    half = 4.30265 * np.std(runs, ddof=1) / np.sqrt(3)
    assert found.high[1] - found["mean"][1] == pytest.approx(half, rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"devices": ["v100"]}, "unknown device 'v100'"),
        ({"workloads": ["chess"]}, "unknown workload 'chess'; the known workloads: chat"),
        ({"presets": ["medusa"]}, "unknown speculation preset 'medusa'; the known presets: baseline"),
        ({"cut_off_rows": 0}, "below_rows: found 0"),
    ],
)
def test_what_is_not_known_is_refused_before_anything_runs(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as error:
        points(**arguments)
    assert message in str(error.value)
