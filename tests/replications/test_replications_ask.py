from __future__ import annotations

import json
from dataclasses import replace

import pytest

from speclab.errors import UserError
from speclab.replications.ask import NamedQuery, answer

ASKED = NamedQuery(acceptance=(0.63, 0.38, 0.25), drafting_ms=0.37)


def test_the_answer_of_the_issue() -> None:
    found = answer(ASKED, with_errors=False).as_json()
    assert {"concurrency", "speed_up", "break_even_length", "crossover", "low", "high", "best_k"} <= set(found)
    lists = [found[name] for name in ("concurrency", "speed_up", "break_even_length", "best_k")]
    assert len({len(each) for each in lists}) == 1
    assert found["low"] < found["crossover"] < found["high"]
    # one in flight: 2.26 tokens, for a step longer by three positions of 0.37 ms on one of 6.1 ms or so
    assert found["speed_up"][0] == pytest.approx(2.26 / (1 + 3 * 0.37 / (1e3 * found["baseline_step_s"][0])), rel=1e-3)
    assert json.loads(json.dumps(found, allow_nan=False))["warnings"]


def test_cost_is_given_around_the_crossover() -> None:
    found = answer(replace(ASKED, concurrency=(1, 64)), with_errors=False)
    at = found.prediction.crossover.value
    assert at is not None
    costs = {each["concurrency"]: each for each in found.costs}
    assert {1.0, 64.0, at / 2, at, 2 * at} == set(costs)
    # where the speed-up is 1 a token costs the same dollars, and more joules: rejected drafts were computed too
    assert costs[at]["usd_per_mtok"] == pytest.approx(costs[at]["baseline_usd_per_mtok"], rel=2e-3)
    assert (costs[at]["j_per_mtok"] or 0) > (costs[at]["baseline_j_per_mtok"] or 0)
    assert (costs[1.0]["j_per_mtok"] or 0) < (costs[1.0]["baseline_j_per_mtok"] or 0)


def test_another_device_is_carried_over_with_a_warning() -> None:
    found = answer(replace(ASKED, device="a100", drafting_ms=None), with_errors=False).prediction
    assert found.warnings[0].startswith("no measurement of A100 SXM 80 GB: H100 SXM's shares")
    here = answer(replace(ASKED, drafting_ms=None), with_errors=False).prediction
    # 153 operations a byte against 295: compute runs out sooner
    assert (found.crossover.value or 1e9) < (here.crossover.value or 0)


def test_launches_are_the_calibration_s_where_none_are_given() -> None:
    asked = replace(ASKED, drafting_ms=None, concurrency=(1,))
    cheap, dear = (
        answer(replace(asked, method=method), with_errors=False).prediction for method in ("eagle3", "draft-model")
    )
    added_ms = [1e3 * (each.step_s[0] - each.baseline_step_s[0]) / 3 for each in (cheap, dear)]
    assert added_ms == pytest.approx([0.37, 1.98], rel=0.02)  # as Lab 9 has them at batch 1
    unknown = answer(replace(asked, calibration="gsm8k", method="draft-model"), with_errors=False).prediction
    assert "gsm8k has no launches of a draft-model drafter: give --drafting-ms" in unknown.warnings


def test_memory_ends_the_grid_and_is_said() -> None:
    found = answer(replace(ASKED, context=8000.0), with_errors=False).prediction
    assert max(found.concurrency) == 32
    assert any("fill the memory" in warning for warning in found.warnings)


def test_a_position_cheaper_than_its_pass_is_said() -> None:
    found = answer(replace(ASKED, drafting_ms=0.05, concurrency=(1,)), with_errors=False).prediction
    assert any("more than 0.05 ms" in warning for warning in found.warnings)


def test_a_closed_loop_brings_prompts_into_the_steps() -> None:
    loop = replace(ASKED, prompt=400.0, answer=200.0, concurrency=(64,))
    static = replace(ASKED, context=500.0, concurrency=(64,))
    with_prompts, without = (answer(each, with_errors=False).prediction for each in (loop, static))
    assert with_prompts.baseline_step_s[0] > 1.1 * without.baseline_step_s[0]


def test_the_model_s_errors_go_with_the_answer() -> None:
    found = answer(replace(ASKED, concurrency=(1,)))
    assert {each.method for each in found.errors} == {"EAGLE-3"}
    own = answer(replace(ASKED, acceptance=(0.75, 0.5, 0.25), calibration="cpu-smollm2", concurrency=(1,)))
    assert {each.source for each in own.errors} == {"lab cpu-smollm2"}
    assert own.costs == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"device": "tpu"}, "--device: unknown device 'tpu'; the known devices: h100, a100"),
        ({"model": "gpt-5"}, "--model: unknown model 'gpt-5'; the known ones: llama-3.1-8b"),
        ({"calibration": "mine"}, "--calibration: unknown calibration 'mine'"),
        ({"device": "a100", "calibration": "cpu-smollm2"}, "--device: found 'a100'; the calibration cpu-smollm2"),
        ({"drafter": "medusa"}, "--drafter: unknown shape 'medusa'"),
        ({"model": "llama-3.2-1b"}, "--drafter: no known eagle3 drafter for Llama 3.2 1B"),
        ({"k": 0}, "--k: found 0; give at least one"),
        ({"drafting_ms": 0.0}, "--drafting-ms: found 0; give milliseconds above 0"),
        ({"context": float("nan")}, "--context: found nan; give tokens"),
        ({"context": 500_000.0}, "--context: one request of 500000 tokens does not fit: H100 SXM has room for"),
        (
            {"context": 5000.0, "concurrency": (1, 256)},
            "--concurrency: 256 requests of 5000 tokens exceed the KV memory",
        ),
        ({"prompt": 100.0}, "--answer: missing; give both mean lengths"),
        ({"acceptance": (0.63, 0.7, 0.25)}, "acceptance: found 0.63,0.7,0.25, which rises"),
        ({"acceptance": (0.63, 0.38)}, "acceptance: found 2 shares"),
        ({"draft_rate": 1.5}, "draft-rate: found 1.5"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(change: dict[str, object], expected: str) -> None:
    with pytest.raises(UserError) as error:
        answer(replace(ASKED, **change), with_errors=False)  # type: ignore[arg-type]
    assert expected in str(error.value)
