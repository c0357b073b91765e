from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from speclab import lab as labs
from speclab.errors import UserError
from speclab.lab import Phases, Speculation

ARM = """
lab: mini
arm: ngram
label: n-gram
speculation: {method: ngram, num_speculative_tokens: 4, prompt_lookup_min: 2, prompt_lookup_max: 4}
"""
LAB = """
title: Mini
question: Does it read?
target: {model: a/b, tokens: llama-3.1}
arms: [ngram]
workloads: [chat]
concurrencies: [1, 4]
"""


@pytest.fixture
def mini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    folder = tmp_path / "labs" / "mini"
    folder.mkdir(parents=True)
    (folder / "lab.yml").write_text(LAB)
    (folder / "ngram.yml").write_text(ARM)
    return folder


def test_every_committed_lab_and_arm_is_valid() -> None:
    assert {"lab09", "cpu-smollm2"} <= set(labs.names())
    for name in labs.names():
        lab = labs.load(name)
        assert [lab.arm(arm).arm for arm in lab.arms] == list(lab.arms)
        files = {file.stem for file in (labs.paths.labs() / name).glob("*.yml")} - {"lab", "book"}
        assert files == set(lab.arms), "an arm file that no lab runs, or an arm without a file"
        for arm in files - {labs.BASELINE, "eagle3-forced"}:
            assert arm.endswith(f"-k{lab.arm(arm).k}")


def test_lab09_is_what_the_report_ran() -> None:
    lab = labs.load("lab09")
    assert lab.arms == ("baseline", "draft-1b-k3", "eagle3-k3", "ngram-k8", "ngram-k2")
    assert lab.workloads == ("chat", "completion", "revision")
    assert lab.concurrencies == (1, 4, 16, 64, 128, 256)
    assert lab.phases.window_s == (5.0, 57.0)
    assert lab.sampling.temperature == 0
    assert lab.server["enable-prefix-caching"] is False
    assert lab.server["max-num-seqs"] == max(lab.concurrencies)
    assert {name: lab.arm(name).k for name in lab.arms} == {
        "baseline": 0, "draft-1b-k3": 3, "eagle3-k3": 3, "ngram-k8": 8, "ngram-k2": 2,
    }  # fmt: skip


def test_an_arm_is_forced_where_its_acceptance_is_held() -> None:
    lab = labs.load("cpu-smollm2")
    assert [name for name in lab.arms if lab.arm(name).is_forced] == ["eagle3-forced"]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("speculaton: {}", ["ngram.yml: speculaton", "unknown key 'speculaton'", "did you mean 'speculation'?"]),
        ("label: 3", ["ngram.yml: label", "found 3", "write text; quote what looks like a number"]),
        (
            "speculation: {method: ngram, num_speculative_tokens: 0, prompt_lookup_min: 2, prompt_lookup_max: 4}",
            ["ngram.yml: speculation.num_speculative_tokens", "found 0", "greater than 0"],
        ),
        (
            "speculation: {method: ngram, num_speculative_tokens: 4}",
            ["ngram.yml: speculation", "prompt_lookup_min and prompt_lookup_max"],
        ),
        ("speculation: {method: eagle3, num_speculative_tokens: 3}", ["speculation", "eagle3 needs a model"]),
        ("speculation: {method: medusa, num_speculative_tokens: 3}", ["speculation.method", "'medusa'", "'ngram'"]),
        (
            "speculation: {method: eagle3, model: m, num_speculative_tokens: 2, rejection_sample_method: synthetic}",
            ["ngram.yml: speculation", "rejection_sample_method: synthetic and synthetic_acceptance_rates go together"],
        ),
        (
            "speculation: {method: eagle3, model: m, num_speculative_tokens: 1, synthetic_acceptance_rates: [0.5]}",
            ["ngram.yml: speculation", "go together"],
        ),
        (
            "speculation: {method: eagle3, model: m, num_speculative_tokens: 2, rejection_sample_method: synthetic, "
            "synthetic_acceptance_rates: [0.5, 0.6]}",
            ["synthetic_acceptance_rates must be a falling curve, one value for each of the 2 draft positions"],
        ),
        (
            "speculation: {method: eagle3, model: m, num_speculative_tokens: 2, rejection_sample_method: synthetic, "
            "synthetic_acceptance_rates: [0.5]}",
            ["must be a falling curve, one value for each of the 2"],
        ),
        (
            "speculation: {method: eagle3, model: m, num_speculative_tokens: 1, rejection_sample_method: synthetic, "
            "synthetic_acceptance_rates: [1.5]}",
            ["speculation.synthetic_acceptance_rates.0", "found 1.5", "less than or equal"],
        ),
        ("arm: other", ["ngram.yml", "says lab 'mini', arm 'other'", "make them agree"]),
        (
            "simulated: {acceptance: {chat: [0.4, 0.6]}}",
            ["ngram.yml: simulated", "acceptance of chat must be a falling curve"],
        ),
        ("simulated: {acceptance: {chat: [1.4]}}", ["simulated.acceptance.chat.0", "found 1.4", "less than or equal"]),
        ("label: [", ["ngram.yml", "not YAML", "fix the syntax"]),
    ],
)
def test_a_mistake_is_one_line_with_file_key_value_and_remedy(mini: Path, wrong: str, expected: list[str]) -> None:
    kept = [line for line in ARM.splitlines() if line.split(":")[0] != wrong.split(":")[0]]
    (mini / "ngram.yml").write_text("\n".join([*kept, wrong]))
    with pytest.raises(UserError) as error:
        labs.load("mini").arm("ngram")
    message = str(error.value)
    assert "\n" not in message
    for part in expected:
        assert part in message


def test_an_unknown_lab_or_arm_names_those_that_are_there(mini: Path) -> None:
    with pytest.raises(UserError, match=r"unknown lab 'lab10'; the labs here: mini"):
        labs.load("lab10")
    with pytest.raises(UserError, match=r"lab.yml: arms: unknown arm 'eagle'; the arms of mini: ngram"):
        labs.load("mini").arm("eagle")


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("concurrencies: [4, 1]", "concurrencies must rise"),
        ("arms: [ngram, ngram]", "holds a name twice"),
        ("workloads: [chat, summaries]", "workloads.1: found 'summaries'"),
        ("phases: {length_s: 5}", "phases: .* must be longer"),
        ("enginee: vllm", "did you mean 'engine'"),
        ("concurrencies: [true, 4]", "concurrencies.0: found True; give a whole number"),
        ('concurrencies: ["1", 4]', "concurrencies.0: found '1'; give a whole number"),
        ("concurrencies: [1.5, 4]", "concurrencies.0: found 1.5; give a whole number"),
        ("concurrencies: [1, 100000]", "concurrencies.1: found 100000; must be less than or equal to 65536"),
        ("concurrencies: 4", r"concurrencies: found 4; write a list, as in \[a, b\]"),
        ("concurrencies: [4, 1]", r"lab.yml: found concurrencies: \[4, 1\]; concurrencies must rise"),
        ("workloads: []", r"workloads: found \[\]; give at least one$"),
        ("arms: ngram", "arms: found 'ngram'; write a list"),
        ("arms: [ngram, ../other]", "arms.1: found '../other'; use letters, digits"),
        ("repeats: true", "repeats: found True; give a whole number"),
        ("phases: {length_s: .inf}", "phases.length_s: found inf; give a finite number"),
        ("phases: {length_s: 100000}", "phases.length_s: found 100000; must be less than or equal to 86400"),
        ("phases: {length_s: 60, drop_first_s: .nan}", "phases.drop_first_s: found nan; give a finite number"),
        ("phases: {length_s: 5}", "phases: found length_s: 5; length_s must be longer than drop_first_s"),
        ("phases: 3", "phases: found 3; write keys and values below it"),
        ("sampling: {seed: -1}", "sampling.seed: found -1; must be greater than or equal to 0"),
        ("sampling: {max_tokens: 100000000000}", "sampling.max_tokens: found 100000000000; must be less than"),
        ("simulated: {device: d, shape: s, answers: {chat: {mean_tokens: .inf, cv: 0}}}", "mean_tokens: found inf"),
        ("simulated: {device: d, shape: s, answers: {chat: {mean_tokens: 9, cv: 11}}}", "cv: found 11; must be less"),
        ("server: {seed: null}", "server.seed: found None; write text, a number, true or false"),
        ("title: 2026-99-99", "lab.yml: not YAML"),
    ],
)
def test_a_mistake_in_the_lab_is_named_too(mini: Path, wrong: str, expected: str) -> None:
    kept = [line for line in LAB.splitlines() if line.split(":")[0] != wrong.split(":")[0]]
    (mini / "lab.yml").write_text("\n".join([*kept, wrong]))
    with pytest.raises(UserError, match=expected):
        labs.load("mini")


def test_a_key_that_is_written_twice_is_named_with_its_line(mini: Path) -> None:
    (mini / "lab.yml").write_text(LAB + "phases: {length_s: 60,\n  length_s: 30}\n")
    with pytest.raises(UserError, match=r"lab.yml: length_s: occurs twice, again in line 9; keep one of them"):
        labs.load("mini")
    (mini / "lab.yml").write_text(LAB + "title: Another\n")
    with pytest.raises(UserError, match=r"lab.yml: title: occurs twice, again in line 8"):
        labs.load("mini")


def test_a_merged_mapping_may_override_a_key(mini: Path) -> None:
    text = LAB + "server: &all {seed: 1, max-num-seqs: 8}\nenvironment: {A: b}\n"
    (mini / "lab.yml").write_text(text)
    (mini / "ngram.yml").write_text(ARM + "server: {<<: {seed: 1, max-num-seqs: 8}, seed: 2}\n")
    assert labs.load("mini").arm("ngram").server == {"seed": 2, "max-num-seqs": 8}


def test_a_mistake_inside_a_model_shows_only_the_keys_it_is_about(mini: Path) -> None:
    (mini / "ngram.yml").write_text(ARM.replace("method: ngram", "method: eagle3"))
    with pytest.raises(UserError) as error:
        labs.load("mini").arm("ngram")
    assert str(error.value).endswith("speculation: found method: 'eagle3'; eagle3 needs a model")


def test_a_lab_outside_the_folder_of_labs_is_unknown(mini: Path) -> None:
    with pytest.raises(UserError, match=r"unknown lab '\.\./labs/mini'; the labs here: mini"):
        labs.load("../labs/mini")


def test_phases_keep_a_window() -> None:
    assert Phases(length_s=10, drop_first_s=2, drop_last_s=1).window_s == (2, 9)


def test_a_folder_without_labs_says_how_to_name_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    with pytest.raises(UserError, match="unknown lab 'lab09'; no lab is here: SPECLAB_ROOT names the checkout"):
        labs.load("lab09")


SCHEDULE = "num_speculative_tokens_per_batch_size"


def a_schedule(*ranges: tuple[int, int, int], k: int = 8) -> Speculation:
    return Speculation.model_validate(
        {"method": "ngram", "num_speculative_tokens": k, "prompt_lookup_min": 2, "prompt_lookup_max": 4,
         SCHEDULE: [list(each) for each in ranges]}
    )  # fmt: skip


def test_f12_a_schedule_is_read_from_an_arms_file_and_handed_to_vllm(mini: Path) -> None:
    ranges = f"num_speculative_tokens: 8, {SCHEDULE}: [[1, 32, 8], [33, 64, 2], [65, 256, 0]]"
    (mini / "ngram.yml").write_text(ARM.replace("num_speculative_tokens: 4", ranges))
    arm = labs.load("mini").arm("ngram")
    assert arm.speculation is not None
    assert arm.has_schedule
    assert json.loads(json.dumps(arm.speculation.as_vllm()))[SCHEDULE] == [[1, 32, 8], [33, 64, 2], [65, 256, 0]]
    assert [arm.k_at(n) for n in (1, 32, 33, 64, 65, 256, 1024)] == [8, 8, 2, 2, 0, 0, 0]
    assert arm.k == 8


def test_f12_between_ranges_the_earlier_k_is_kept() -> None:
    speculation = a_schedule((1, 16, 8), (32, 128, 2))
    assert [speculation.k_at(n) for n in (16, 17, 31, 32)] == [8, 8, 8, 2]


@pytest.mark.parametrize(
    ("ranges", "k", "said"),
    [
        ([(2, 8, 8)], 8, "must begin at batch size 1"),
        ([(1, 8, 8), (8, 16, 2)], 8, "must rise without overlaps"),
        ([(1, 8, 8), (17, 16, 2)], 8, "must rise without overlaps"),
        ([(1, 8, 4), (9, 16, 2)], 8, "num_speculative_tokens must be the most that .* drafts: 4"),
    ],
)
def test_f12_a_schedule_that_vllm_would_refuse_or_bend(ranges: list[tuple[int, int, int]], k: int, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        a_schedule(*ranges, k=k)
