from __future__ import annotations

import pytest
from doctor_cases import DRAFT, HEAD, TARGET, files, level, only

from speclab.doctor import weights
from speclab.doctor.base import ModelFiles
from speclab.lab import Target

GATED = "meta-llama/Llama-3.1-8B-Instruct"
ABSENT = ModelFiles(place="hub", where="the hub's cache")


@pytest.mark.parametrize(
    ("found", "machine", "expected"),
    [
        (files(), {}, "fine"),
        (ABSENT, {}, "will fail"),
        (ABSENT, {"has_hub_token": True}, "not known here"),
        (ABSENT, {"has_hub_token": True, "variables": {"HF_HUB_OFFLINE": "1"}}, "will fail"),
        (ModelFiles(place="missing folder", where="models/x"), {"has_hub_token": True}, "will fail"),
        (ModelFiles(place="folder", where="models/x", config={}), {}, "will fail"),  # a config.json, and no weights
    ],
)
def test_where_the_target_is(case, found, machine, expected) -> None:
    made = case(models={GATED: found}, **machine)
    lab = made.lab.model_copy(update={"target": Target(model=GATED, tokens="llama-3.1")})
    assert level(weights.target_files(type(made)(lab, made.arm, made.baseline, made.machine))) == expected


def test_a_model_that_this_project_makes_is_named_with_its_command(case) -> None:
    name = "models/smollm2-135m-instruct"
    made = case(models={name: ModelFiles(place="missing folder", where=name)})
    lab = made.lab.model_copy(update={"target": Target(model=name, tokens="smollm2")})
    found = only(weights.target_files(type(made)(lab, made.arm, made.baseline, made.machine)))
    assert found.remedy == "speclab weights smollm2"


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("models/smollm2-135m-4l", "speclab weights smollm2-4l"),
        ("data/drafters/smollm2-135m-eagle3", "speclab drafter train"),
    ],
)
def test_a_drafter_of_this_project_is_named_with_its_command(case, folder: str, command: str) -> None:
    made = case("draft_model", models={DRAFT: ModelFiles(place="missing folder", where=folder)})
    speculation = made.arm.speculation.model_copy(update={"model": folder})
    arm = made.arm.model_copy(update={"speculation": speculation})
    there = {folder: ModelFiles(place="missing folder", where=folder)}
    machine = made.machine.model_copy(update={"models": there})
    found = only(weights.drafter_files(type(made)(made.lab, arm, made.baseline, machine)))
    assert (found.level, found.remedy) == ("will fail", command)


def test_a_drafter_that_is_not_gated_may_be_had_without_a_token(case) -> None:
    assert level(weights.drafter_files(case("eagle3", models={HEAD: ABSENT}))) == "not known here"
    assert weights.drafter_files(case("ngram")) == []


def test_vocabularies_that_differ(case) -> None:
    assert level(weights.vocabulary(case("draft_model"))) == "fine"
    other = {TARGET: files(), DRAFT: files(vocab_size=32000)}
    found = only(weights.vocabulary(case("draft_model", models=other)))
    assert found.level == "will fail"
    assert "32000" in found.found
    assert "128256" in found.found
    assert weights.vocabulary(case("ngram")) == []


def test_vocabularies_of_models_that_are_not_here_are_not_guessed(case) -> None:
    assert level(weights.vocabulary(case("draft_model", models={TARGET: ABSENT, DRAFT: files()}))) == "not known here"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"eagle_aux_hidden_state_layer_ids": [2, 16, 29]}, "fine"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 15, 28]}}, "fine"),
        ({"eagle_aux_hidden_state_layer_ids": [2, 40, 77]}, "will fail"),  # a head for 80 layers on a target with 32
        ({"hidden_size": 8192}, "will fail"),
        ({"target_hidden_size": 4096, "hidden_size": 2048}, "not known here"),
        ({}, "not known here"),
    ],
)
def test_an_eagle_head_and_its_target(case, config, expected) -> None:
    assert level(weights.eagle(case("eagle3", models={TARGET: files(), HEAD: files(**config)}))) == expected


def test_layers_that_are_not_named_are_vllms_own(case) -> None:
    # vllm#50170: 2, layers // 2, layers - 3; for the 80 layers of Llama 3.3 70B it prints 2, 40, 77
    models = {TARGET: files(num_hidden_layers=80), HEAD: files()}
    assert "2, 40, 77 of 80" in only(weights.eagle(case("eagle3", models=models))).found


def with_head(case, method: str = "eagle3", k: int = 3, model_len: int = 8192, max_tokens: int = 6000, **config):
    name = HEAD if method == "eagle3" else DRAFT
    made = case(method, k, server={"max-model-len": model_len}, models={TARGET: files(), name: files(10**9, **config)})
    sampling = made.lab.sampling.model_copy(update={"max_tokens": max_tokens})
    lab = made.lab.model_copy(update={"sampling": sampling})
    return type(made)(lab, made.arm, made.baseline, made.machine)


@pytest.mark.parametrize("method", ["eagle3", "draft_model"])
def test_f8_rows_that_outgrow_a_drafter_of_2048_positions(case, method) -> None:
    found = only(weights.positions(with_head(case, method, max_position_embeddings=2048)))
    assert found.level == "will mislead"
    assert "has 2048, rows and drafts reach 6" in found.found
    assert "vllm#58080" in found.cites


@pytest.mark.parametrize(
    ("config", "changed", "expected"),
    [
        ({"max_position_embeddings": 8195}, {"model_len": 8192, "max_tokens": 100_000}, "fine"),  # 8192 and 3 drafts
        ({"max_position_embeddings": 8194}, {"model_len": 8192, "max_tokens": 100_000}, "will mislead"),
        ({"max_position_embeddings": 2048}, {"max_tokens": 512}, "fine"),
        ({"max_position_embeddings": 2048}, {"model_len": 2045}, "fine"),  # the server cuts rows before
        ({"max_position_embeddings": 2048, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}, {}, "fine"),
        ({"max_position_embeddings": 2048, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, {}, "will mislead"),
        ({"max_position_embeddings": 2048, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, {}, "will mislead"),
        ({"max_position_embeddings": 2048, "rope_parameters": {"rope_type": "linear", "factor": 4}}, {}, "fine"),
        ({"transformer_layer_config": {"max_position_embeddings": 2048}}, {}, "will mislead"),
        ({"max_position_embeddings": 131072, "n_positions": 2048}, {}, "will mislead"),  # vLLM takes the smaller
        ({}, {}, "not known here"),
    ],
)
def test_f8_positions_as_vllm_reads_them(case, config, changed, expected) -> None:
    assert level(weights.positions(with_head(case, **changed, **config))) == expected


def test_f8_what_drafts_without_a_network_has_no_end(case) -> None:
    assert weights.positions(case("ngram")) == []
    assert weights.positions(case()) == []


def test_f8_an_older_vllm_reads_past_the_heads_table(case) -> None:
    made = with_head(case, max_position_embeddings=2048)
    old = type(made)(made.lab, made.arm, made.baseline, made.machine.model_copy(update={"vllm": "0.24.0"}))
    assert "may read past the drafter's table" in only(weights.positions(old)).found
