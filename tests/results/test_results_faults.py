"""From the records of a server that does one thing wrong to the findings of a lab: no clean, wrong figure is left."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from speclab.findings import between, check_report, long_table
from speclab.results import lab_tables
from stepping_rig import BASELINE, Served

LOADS = (1, 8)
K = {"baseline": 0, "spec-k3": 3}
HEALTHY = Served()
OF_EVENTS = ("tokens_per_step", "step_time", "break_even_length", "drafting_time", "drafting_time_per_position")
OF_COUNTERS = ("acceptance_by_position", "acceptance_by_position_conditional", "reported_acceptance_length")


class RigLab:
    """A baseline and one arm at two loads, as tables, findings and checks."""

    def __init__(self, served: Served, baseline: Served = BASELINE) -> None:
        cells = [each.at(load).cell() for each in (baseline, served) for load in LOADS]
        self.tables = lab_tables.of(cells)
        tables = self.tables
        self.findings, _ = long_table.with_draws(tables.cells, tables.positions, K, tables.answers, tables.blocks)
        self.report = check_report.check_report(tables.cells, tables.checks, self.findings, tables.answers)

    def statuses(self, *names: str) -> set[str]:
        """Return the standing of some findings of the arm, at all loads."""
        rows = self.findings[(self.findings["arm"] == "spec-k3") & self.findings["finding"].isin(names)]
        assert set(rows["finding"]) == set(names)
        return set(rows["status"])

    def values(self, name: str, arm: str = "spec-k3") -> list[float]:
        """Return the values of one of the arm's findings, by load."""
        rows = self.findings[(self.findings["finding"] == name) & (self.findings["arm"] == arm)]
        return [float(value) for value in rows["value"]]

    def failed(self) -> set[str]:
        """Return the names of the checks that FAIL."""
        return set(self.report.loc[self.report["verdict"] == "FAIL", "check"])


@pytest.fixture(scope="module")
def healthy() -> RigLab:
    return RigLab(HEALTHY)


def test_a_healthy_arm_has_every_figure_and_they_are_those_of_the_server(healthy: RigLab) -> None:
    assert healthy.failed() == set()
    assert healthy.statuses("speed_up", *OF_EVENTS, *OF_COUNTERS) == {"ok"}
    assert healthy.values("speed_up") == pytest.approx([1.83, 1.83], abs=0.09)
    assert healthy.values("drafting_time")[0] == pytest.approx(15.0, abs=0.1)
    assert set(healthy.report["check"]) >= {"tokens per prompt", "empty answers", "same text"}


def test_f1_another_k_leaves_no_figure_of_the_arm() -> None:
    lab = RigLab(Served(acceptance=(0.5, 0.25, 0.1, 0.05, 0.02), step_s=0.075))
    assert "draft length" in lab.failed()
    assert lab.statuses("speed_up", *OF_EVENTS, *OF_COUNTERS) == {"failed check"}


def test_f2_a_baseline_with_silent_requests_gives_no_speed_up() -> None:
    lab = RigLab(HEALTHY, replace(BASELINE, stuck=True, gauges=False))
    assert lab.failed() >= {"answering"}
    speed_ups = lab.findings[lab.findings["finding"] == "speed_up"].set_index("concurrency")["status"]
    assert speed_ups.to_dict() == {1.0: "ok", 8.0: "failed check"}, "at one in flight no slot is stuck"


def test_f3_short_answers_to_the_same_prompts_are_no_speed_up() -> None:
    lab = RigLab(Served(acceptance=(0.95, 0.9, 0.85), answer_tokens=(6, 10)))
    assert "tokens per prompt" in lab.failed()
    assert lab.statuses("speed_up", *OF_EVENTS) == {"failed check"}
    row = lab.report[(lab.report["check"] == "tokens per prompt") & (lab.report["concurrency"] == 8)].iloc[0]
    assert row["value"] == pytest.approx(-0.92, abs=0.02)
    assert row["remedy"]
    verdict = lab.findings[(lab.findings["finding"] == "speed_up") & (lab.findings["concurrency"] == 8)].iloc[0]
    cells = between.judged(lab.tables.cells, lab.tables.answers)
    assert check_report.failed_at(verdict, cells) == "spec-k3: tokens per prompt (1)"


def test_f3_another_text_of_the_same_length_is_no_speed_up() -> None:
    lab = RigLab(replace(HEALTHY, text="I cannot help you with that, dear reader"))
    assert lab.failed() == {"same text"}
    made = lab.report[lab.report["check"] == "same text"].set_index("concurrency")["verdict"]
    assert made.to_dict() == {1: "WARN", 8: "FAIL"}, "three prompts are too few to tell"
    speed_ups = lab.findings[lab.findings["finding"] == "speed_up"].set_index("concurrency")["status"]
    assert speed_ups[8.0] == "failed check"


def test_f5a_merged_steps_leave_the_throughput_and_take_what_is_made_of_steps() -> None:
    lab = RigLab(Served(k=5, acceptance=(0.3, 0.1, 0.03, 0.01, 0.0), step_s=0.075, chunks="pair"))
    assert lab.failed() >= {"drafted share", "tokens by counters"}
    assert lab.statuses(*OF_EVENTS, "draft_coverage") == {"failed check"}
    assert lab.statuses("speed_up") == {"ok"}
    assert lab.values("speed_up") == pytest.approx([1.44 * 50 / 75] * 2, abs=0.06)


def test_f5b_tokens_one_by_one_leave_the_throughput_and_take_what_is_made_of_steps() -> None:
    lab = RigLab(Served(acceptance=(0.3, 0.1, 0.03), step_s=0.055, chunks="token"))
    assert lab.failed() >= {"bunched events", "engine steps", "tokens by counters"}
    assert lab.statuses(*OF_EVENTS) == {"failed check"}
    assert lab.statuses("speed_up") == {"ok"}


def test_f5b_a_drafting_time_below_0_is_a_failed_check_by_itself(cells_of_steps: pd.DataFrame) -> None:
    table = long_table.findings(cells_of_steps, pd.DataFrame(), K)
    times = table[table["finding"] == "drafting_time"].iloc[0]
    assert (times["value"], times["status"]) == (pytest.approx(-12.0), "failed check")
    assert set(table[table["finding"] == "break_even_length"]["status"]) == {"failed check"}
    assert set(table[table["finding"] == "speed_up"]["status"]) == {"ok"}
    report = check_report.check_report(cells_of_steps, pd.DataFrame(), table)
    row = report[report["check"] == "drafting time"].iloc[0]
    assert (row["verdict"], row["value"]) == ("FAIL", pytest.approx(-12.0))
    assert row["remedy"]


@pytest.fixture
def cells_of_steps(healthy: RigLab) -> pd.DataFrame:
    """Three repeats of one place, in which the arm's steps are 12 ms shorter than the baseline's."""
    one = healthy.tables.cells.query("concurrency == 8")
    repeats = [one.assign(repeat=repeat, step_time=one["arm"].map({"baseline": 50.0, "spec-k3": 38.0}) + 0.1 * repeat)
               for repeat in range(3)]  # fmt: skip
    return pd.concat(repeats, ignore_index=True)


def test_f5c_a_wrong_counter_takes_what_rests_on_counters_and_what_it_contradicts() -> None:
    lab = RigLab(replace(HEALTHY, accepted_times=1.2))
    assert lab.failed() >= {"tokens by counters", "draft positions"}
    assert lab.statuses(*OF_COUNTERS, "tokens_per_step") == {"failed check"}
    assert lab.statuses("speed_up") == {"ok"}
    assert check_report.withheld(lab.findings).empty
    others = check_report.others_withheld(lab.findings)
    assert "speed_up" not in others
    assert others["tokens_per_step"] == others["acceptance_by_position"] == len(LOADS)


def test_f6_acceptance_that_fell_is_no_acceptance() -> None:
    served = Served(step_s=0.026, later=(0.02, 0.0, 0.0), later_step_s=0.0265, later_from_s=8.5)
    lab = RigLab(served, replace(BASELINE, step_s=0.02))
    assert lab.failed() >= {"acceptance holds", "stationarity"}
    assert lab.statuses(*OF_COUNTERS, "tokens_per_step", "speed_up") == {"failed check"}


def test_f6_a_throughput_that_holds_stands_though_acceptance_does_not() -> None:
    # the step shortens as acceptance falls, so that as many tokens come a second
    served = Served(later=(0.02, 0.0, 0.0), later_step_s=0.065 * 1.02 / 2.45, later_from_s=8.5)
    lab = RigLab(served)
    assert lab.failed() == {"acceptance holds"}
    assert lab.statuses(*OF_COUNTERS, "tokens_per_step") == {"failed check"}
    assert lab.statuses("speed_up") == {"ok"}


def test_f13_a_server_that_puts_requests_back_gives_no_speed_up() -> None:
    lab = RigLab(replace(HEALTHY, preemptions=2.0))
    assert lab.failed() == {"preemptions"}
    assert lab.statuses("speed_up") == {"failed check"}
    assert lab.statuses(*OF_COUNTERS) == {"ok"}, "which tokens were accepted is another question"


def test_g1_a_capped_server_without_gauges_and_an_arm_that_never_drafts_give_no_speed_up() -> None:
    blind = {"gauges": False, "counters": False, "at_once": 4}
    never = Served(acceptance=(), method="ngram", step_s=0.034, **blind)
    lab = RigLab(never, replace(BASELINE, **blind))
    assert lab.failed() >= {"answering", "speculation"}
    speed_ups = lab.findings[lab.findings["finding"] == "speed_up"].set_index("concurrency")["status"]
    assert speed_ups[8.0] == "failed check"


@pytest.mark.parametrize("text", [None, float("nan"), ""])
def test_f4_cells_of_which_none_failed_a_check_have_no_names_of_any_type(text: object) -> None:
    cells = pd.DataFrame({"arm": ["spec-k3"], "workload": ["chat"], "concurrency": [1], "repeat": [0], "source": ["s"],
                          "status": ["failed"], "failure": ["hung: no token"], "failed_checks": [text]})  # fmt: skip
    row = {"arm": "spec-k3", "workload": "chat", "concurrency": 1.0, "source": "s"}
    assert check_report.failed_at(row, cells) == "spec-k3: did not run (1)"
