from __future__ import annotations

import json
import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from speclab import lab as labs
from speclab import results
from speclab.advice import advise, advise_or_say_why, frames, report, serve
from speclab.advice.base import Advice, Part
from speclab.errors import UserError
from speclab.findings.schedule import KEY, at
from speclab.lab import Speculation
from speclab.results import Results
from speclab.run import run_arm


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A small part of Lab 9, simulated: EAGLE-3 gains at few requests in flight and loses at many; n-gram never gains
    on chat."""
    data = tmp_path_factory.mktemp("data")
    for arm in ("baseline", "eagle3-k3", "ngram-k8"):
        run_arm("lab09", arm, workloads=["chat", "revision"], concurrencies=[1, 64, 256], out=data,
                phases={"length_s": 14, "drop_first_s": 4, "drop_last_s": 2})  # fmt: skip
    return results.of("lab09", data=data)


@pytest.fixture(scope="module")
def advice(found: Results) -> Advice:
    return advise(found, {"chat": 0.75, "revision": 0.25})


def part(advice: Advice, name: str) -> Part:
    return next(part for part in advice.parts if part.name == name)


def test_it_serves_what_gains_and_stops_where_that_loses(advice: Advice) -> None:
    chat = part(advice, "chat")
    assert [(served.concurrency, served.arm) for served in chat.served] == [
        (1, "eagle3-k3"), (64, "eagle3-k3"), (256, "baseline"),
    ]  # fmt: skip
    assert all(served.low is not None and served.low > 1 for served in chat.served[:2])
    (change,) = chat.changes
    assert 64 < change.low < (change.value or 0) < change.high < 256
    assert change.sentence.startswith(
        f"eagle3-k3 up to {change.high} in flight, then baseline; back to eagle3-k3 below"
    )
    assert chat.not_known == (4, 16, 128), "what was not run is not advised on"
    assert {"chat", "revision", "mix"} == {each.name for each in advice.parts}


def test_the_schedule_says_what_the_policy_says(advice: Advice) -> None:
    for each in advice.parts:
        assert each.schedule is not None
        assert each.drafter == "eagle3-k3"
        assert [at(list(each.schedule), size) for size in (1, 64, 256)] == [3, 3, 0]
        assert each.schedule[-1][1] == 256, "up to max-num-seqs"


def test_f12_the_printed_schedule_is_taken_by_an_arm_and_served_as_it_was_printed(advice: Advice) -> None:
    scheduled = [each for each in advice.parts if each.schedule is not None]
    assert scheduled
    for each in scheduled:
        assert each.schedule is not None
        lab = labs.load(advice.lab)
        arm = lab.arm(each.drafter or "")
        assert arm.k == max(k for *_, k in each.schedule)
        assert arm.speculation is not None
        speculation = Speculation.model_validate(arm.speculation.model_dump() | {KEY: each.schedule})
        as_arm = arm.model_copy(update={"speculation": speculation})
        assert serve.words(lab, as_arm) == serve.words(lab, arm, list(each.schedule))
        assert [as_arm.k_at(first) for first, _, _ in each.schedule] == [k for *_, k in each.schedule]


def test_one_setting_for_all_taxes_chat(advice: Advice) -> None:
    costs = {(row.arm, row.workload, row.concurrency): row for row in advice.regret}
    ngram = costs["ngram-k8", "chat", 1]
    assert ngram.best == "eagle3-k3"
    assert 0.5 < ngram.value < 0.7  # 1 - 0.9 / 2.26 or so
    assert ngram.low is not None
    assert ngram.low < ngram.value
    assert costs["eagle3-k3", "chat", 1].value == 0
    assert costs["eagle3-k3", "mix", 256].value > 0


def test_the_lines_can_be_pasted(advice: Advice) -> None:
    line = part(advice, "mix").lines[0]
    assert line.purpose == "one server for all loads"
    words = shlex.split(line.command)
    assert words[:4] == ["VLLM_USE_V2_MODEL_RUNNER=0", "vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"]
    config = json.loads(words[words.index("--speculative-config") + 1])
    assert config["num_speculative_tokens"] == 3
    assert config["num_speculative_tokens_per_batch_size"] == [
        list(each) for each in part(advice, "mix").schedule or ()
    ]
    baseline = next(line for line in part(advice, "chat").lines if line.purpose.startswith("baseline"))
    assert "--speculative-config" not in baseline.command


def test_each_warning_links_to_where_it_was_told(advice: Advice) -> None:
    assert {warned.about for warned in advice.warnings} >= {"the threshold", "k = 0 is not free", "CUDA graphs"}
    assert all(link.startswith("https://") for warned in advice.warnings for link in warned.links)
    assert all(warned.links for warned in advice.warnings)


def test_the_tables_say_the_same(advice: Advice) -> None:
    policy = frames.policy(advice).set_index("traffic")
    assert policy.columns.tolist() == ["1", "64", "256"]
    assert policy.loc["chat", "256"] == "baseline"
    assert policy.loc["chat", "1"].startswith("eagle3-k3 2.")
    assert frames.policy(advice, with_speed=False).set_index("traffic").loc["chat", "1"] == "eagle3-k3"
    assert frames.regret(advice).set_index("one arm for all").loc["baseline", "costs chat, %"].startswith("0 to ")
    assert frames.switches(advice)["traffic"].tolist() == ["chat", "revision", "mix"]
    assert frames.chosen_k(advice).set_index(["drafter", "workload"]).loc[("eagle3-k3", "chat"), "1"] == "3"
    assert frames.schedules(advice)["schedule"].str.startswith("[[1, ").all()
    assert part(advice, "chat").turn == {"eagle3-k3": 64, "baseline": 256}


def test_json_is_strict_and_whole(advice: Advice) -> None:
    read = json.loads(report.to_json(advice), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert set(read) == set(Advice.model_fields)
    assert read["mix"] == {"chat": 0.75, "revision": 0.25}
    assert Advice.model_validate(read) == advice


def test_the_k_is_told_with_what_to_measure_next(advice: Advice) -> None:
    chosen = {(row.drafter, row.workload, row.concurrency): row.k for row in advice.k}
    assert chosen["eagle3-k3", "chat", 1] == 3
    assert chosen["eagle3-k3", "chat", 256] == 1
    assert advice.worth_measuring["eagle3-k3"][0] == 4


def test_a_baseline_has_no_schedule() -> None:
    lab = labs.load("cpu-smollm2")
    with pytest.raises(ValueError, match="no speculation to schedule"):
        serve.line(lab, lab.arm("baseline"), [(1, 16, 0)])


def with_cells(found: Results, cells: pd.DataFrame) -> Results:
    return Results(found.lab, replace(found.tables, cells=cells))


def test_one_arm_alone_gives_no_advice_and_says_what_would(found: Results) -> None:
    cells = found.tables.cells
    with pytest.raises(UserError, match="no arm stands beside the baseline"):
        advise(with_cells(found, cells[cells["arm"] == "baseline"]))


def test_a_mix_with_a_part_that_was_not_run_is_refused(found: Results) -> None:
    with pytest.raises(UserError, match="--mix: no speed-up on completion passed its checks; give shares of chat, rev"):
        advise(found, {"chat": 0.5, "completion": 0.5})


def test_a_mix_whose_parts_were_never_run_at_one_load_is_told(found: Results) -> None:
    cells = found.tables.cells
    apart = ((cells["workload"] == "chat") & (cells["concurrency"] == 1)) | (
        (cells["workload"] == "revision") & (cells["concurrency"] == 64)
    )
    made = advise(with_cells(found, cells[apart]))
    assert [part.name for part in made.parts] == ["chat", "revision"]
    console = Console(width=200)
    with console.capture() as shown:
        console.print(report.rendered(made))
    assert "mix: at no load are all its parts known" in shown.get()


def test_without_a_baseline_it_says_so(found: Results) -> None:
    cells = found.tables.cells
    with pytest.raises(UserError, match="no results of the arm 'baseline'"):
        advise(with_cells(found, cells[cells["arm"] != "baseline"]))


def test_where_all_cells_failed_it_says_so(found: Results) -> None:
    numbers = found.tables.cells.select_dtypes("number").columns.difference(["concurrency", "repeat", "failure"])
    cells = found.tables.cells.assign(status="failed", failure="hung: no token", **dict.fromkeys(numbers, np.nan))
    with pytest.raises(UserError, match=r"no speed-up passed its checks \(12 failed check\)"):
        advise(with_cells(found, cells))


def test_a_page_says_why_there_is_no_advice(found: Results) -> None:
    cells = found.tables.cells
    said = advise_or_say_why(with_cells(found, cells[cells["arm"] == "baseline"]))
    assert said.parts == ()
    assert said.why_not == "no arm stands beside the baseline (arms with results: baseline)"
    assert frames.policy(said).to_numpy().tolist() == [[said.why_not]]
    assert frames.regret(said).empty
    assert advise_or_say_why(found).why_not is None


def test_old_tables_without_blocks_and_bursts_give_advice_without_noise(found: Results) -> None:
    bare = Results(found.lab, replace(found.tables, blocks=pd.DataFrame(), replays=pd.DataFrame()))
    made = advise(bare)
    chat = part(made, "chat")
    assert [served.arm for served in chat.served] == ["eagle3-k3", "eagle3-k3", "baseline"]
    assert all(served.low is None for served in chat.served)
    assert made.k == ()
