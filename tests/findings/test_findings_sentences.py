from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speclab.findings.check_report import check_report, withheld
from speclab.findings.long_table import findings
from speclab.findings.sentences import crossing, sentence
from speclab.results import strict_json

K = {"baseline": 0, "ngram-k8": 8}
NAN = float("nan")


def row(finding="speed_up", **given):
    base = {"finding": finding, "arm": "ngram-k8", "workload": "chat", "concurrency": 4.0, "value": NAN, "low": NAN}
    return base | {"high": NAN, "n": 1.0, "status": "ok", "unit": "x"} | given


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"value": 1.42, "low": 1.3, "high": 1.5}, "1.42 times the baseline's speed (1.30 to 1.50)."),
        (
            {"value": 1.02, "low": 0.9, "high": 1.1},
            "1.02 times the baseline's speed (0.90 to 1.10, not distinguishable from 1).",
        ),
        ({"value": 1.42}, "1.42 times the baseline's speed; one repeat and no blocks to resample, so no interval."),
        ({"status": "not resolved"}, "not resolved: no baseline at the same place, or it has no such figure."),
        ({"status": "failed check"}, "failed check: no repeat passed the checks that this requires."),
        (
            {"status": "failed check", "value": 0.86},
            "failed check: no repeat passed the checks that this requires; they show 0.86 x, which is excluded.",
        ),
    ],
)
def test_a_speed_up_in_words(given, expected):
    assert sentence(row(**given)) == f"ngram-k8 on chat at 4 in flight: {expected}"


@pytest.mark.parametrize(
    ("given", "short", "long"),
    [
        ({"value": 29.4, "low": 24.1, "high": 36.0}, "29.4 (24.1 to 36)",
         "the speed-up falls to 1 at 29.4 (24.1 to 36) requests in flight."),
        ({"value": 29.4, "low": 24.1}, "29.4 (24.1 to beyond the last point)",
         "the speed-up falls to 1 at 29.4 (24.1 to beyond the last point) requests in flight."),
        ({"value": 29.4}, "29.4", "the speed-up falls to 1 at 29.4 requests in flight."),
        ({"status": "not reached", "low": 256.0}, "above 256",
         "not reached: faster than the baseline up to 256 requests in flight, the most that were measured."),
        ({"status": "not reached", "high": 1.0}, "below 1",
         "not reached: slower than the baseline from 1 requests in flight on, the fewest measured."),
        ({"status": "not resolved", "low": 5.97}, "not resolved (after 5.97)",
         "not resolved: the 5 points that passed their checks do not decide where it crosses 1, "
         "only that it is after 5.97 in flight."),
        ({"status": "not resolved"}, "not resolved",
         "not resolved: the 5 points that passed their checks do not decide where it crosses 1."),
        ({"status": "not resolved", "n": 0.0}, "not resolved",
         "not resolved: no point of the curve has a baseline beside it and passed its checks."),
    ],
)  # fmt: skip
def test_a_crossover_in_words(given, short, long):
    where = row("crossover", **({"concurrency": NAN, "n": 5.0} | given))
    assert crossing(where) == short
    assert sentence(where) == f"ngram-k8 on chat: {long}"


@pytest.fixture
def labs(cell_row):
    """Bad input: labs from which little or nothing can be concluded."""

    def cells(arm, **given):
        return [cell_row(arm, at, system_throughput=100.0 / at, step_time=10.0, **given) for at in (1, 4)]

    failed = {"status": "failed", "failure": "hung: no answer"}
    no_metrics = [{**cell_row("ngram-k8", at, **failed)} for at in (1, 4)]
    return {
        "one arm only": cells("baseline"),
        "a missing baseline at one place": [*cells("baseline")[:1], *cells("ngram-k8")],
        "a single repeat": [*cells("baseline"), *cells("ngram-k8")],
        "all cells failed a check": [*cells("baseline", failed_checks="in flight"), *cells("ngram-k8")],
        "all cells failed": [*[cell_row("baseline", at, **failed) for at in (1, 4)], *no_metrics],
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("one arm only", []),
        ("a missing baseline at one place", ["1.00 times the baseline's speed; one repeat", "no baseline at the same"]),
        ("a single repeat", ["one repeat and no blocks", "one repeat and no blocks"]),
        ("all cells failed a check", ["failed check", "failed check"]),
        ("all cells failed", ["failed check", "failed check"]),
    ],
)
def test_bad_input_is_said_in_words_and_never_as_nan(labs, name, said):
    cells = pd.DataFrame(labs[name])
    table = findings(cells, pd.DataFrame(), K)
    sentences = [sentence(row) for row in table.to_dict("records")]
    of_speed = [text for text, finding in zip(sentences, table["finding"], strict=True) if finding == "speed_up"]
    assert len(of_speed) == len(said)
    assert all(part in text for part, text in zip(said, of_speed, strict=True))
    assert sentences or name == "one arm only"
    assert not any("nan" in text.lower().replace("n-gram", "") for text in sentences)
    assert all(np.isfinite(each["value"] or 0) for each in strict_json.rows(table))
    rows = strict_json.rows(check_report(cells, pd.DataFrame(), table))
    assert all(each["reason"] for each in rows)
    assert all(each["remedy"] for each in rows if each["verdict"] != "PASS")


def test_a_check_report_by_hand(cell_row):
    cells = pd.DataFrame(
        [
            cell_row("baseline", 1, system_throughput=100.0, conditions="a", failed_checks="stationarity"),
            cell_row("ngram-k8", 1, system_throughput=150.0, conditions="b"),
            cell_row("ngram-k8", 4, status="failed", failure="hung: no answer", conditions="a"),
        ]
    )
    keys = {name: cells.iloc[0][name] for name in ("arm", "workload", "concurrency", "repeat", "source")}
    checks = pd.DataFrame([{**keys, "check": "stationarity", "verdict": "FAIL", "value": 0.2, "limit": 0.05,
                            "reason": "second half +20%"}])  # fmt: skip
    table = findings(cells, pd.DataFrame(), K)
    made = check_report(cells, checks, table)
    found = {(row.scope, row.check): (row.verdict, row.reason) for row in made.itertuples()}
    assert found["lab", "baseline beside it"] == ("WARN", "1 of 2 cells have no baseline beside them")
    assert found["lab", "same conditions"] == ("FAIL", "1 of 1 pairs ran under other conditions")
    assert found["lab", "repeats"][0] == "WARN"
    assert found["cell", "cell ran"] == ("FAIL", "hung: no answer")
    assert found["cell", "stationarity"] == ("FAIL", "second half +20%")
    assert made.loc[made["verdict"] != "PASS", "remedy"].notna().all()
    assert withheld(table)["concurrency"].tolist() == [1.0, 4.0]


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (-0.05, -0.09, 0.01, "PASS"),
        (0.01, 0.005, 0.014, "PASS"),
        (-0.05, -0.09, -0.02, "WARN"),
        (-0.3, -0.4, -0.2, "FAIL"),
    ],
)
def test_acceptance_that_moves_is_seen(cell_row, value, low, high, verdict):
    cells = pd.DataFrame([cell_row(arm, 1, repeat=r, conditions="a") for arm in K for r in (0, 1)])
    trend = pd.DataFrame([row("acceptance_trend", value=value, low=low, high=high)])
    made = check_report(cells, pd.DataFrame(), trend)
    assert made.loc[made["check"] == "acceptance is flat", "verdict"].tolist() == [verdict]
    assert made.loc[made["check"] == "repeats", "verdict"].tolist() == ["PASS"]


def test_f4_a_failure_is_of_the_arm_and_not_of_another_source(cell_row):
    failed = {"status": "failed", "failure": "will not start: bad flag", "source": "measured (not started, stub)"}
    cells = pd.DataFrame(
        [
            cell_row("baseline", 1, system_throughput=100.0, source="measured (a server 1, stub)"),
            cell_row("ngram-k8", 1, **failed),
        ]
    )
    table = findings(cells, pd.DataFrame(), K)
    made = check_report(cells, pd.DataFrame(), table)
    beside = made[(made["arm"] == "ngram-k8") & (made["check"] == "baseline beside it")].iloc[0]
    assert (beside["verdict"], beside["reason"]) == ("PASS", "every cell has a baseline")
    # a cell that ran on another server has none
    ran = cells.assign(status="ok", failure=None)
    made = check_report(ran, pd.DataFrame(), findings(ran, pd.DataFrame(), K))
    assert made.loc[made["check"] == "baseline beside it", "verdict"].tolist() == ["FAIL"]
