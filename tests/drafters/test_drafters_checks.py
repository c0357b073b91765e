from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from speclab.drafters import checks, stamp
from speclab.drafters.recipe import CorpusRecipe, HeadRecipe, Recipe
from speclab.errors import UserError

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 512,
    "hidden_act": "silu",
}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(checks, "PACKAGES", ("pydantic",))  # torch is not in the environment that runs most tests
    folder = tmp_path / "target"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    for name in ("model.safetensors", "tokenizer.json", "chat_template.jinja"):
        (folder / name).write_text("", encoding="utf-8")
    return folder


def a_recipe(model: Path, **corpus: int) -> Recipe:
    return Recipe(name="tiny", target=str(model), corpus=CorpusRecipe(rows=2, **corpus))


def configured(model: Path, **changes: object) -> None:
    (model / "config.json").write_text(json.dumps({**CONFIG, **changes}), encoding="utf-8")


def refused(recipe: Recipe, folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        checks.check(recipe, folder, workers=1)
    return str(caught.value)


def test_a_target_in_order_is_let_through(model: Path, tmp_path: Path) -> None:
    checks.check(a_recipe(model), tmp_path / "work" / "deep", workers=1)


def test_a_missing_package_is_named_with_the_extra(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "PACKAGES", ("no_such_package",))
    assert find_spec("no_such_package") is None
    said = refused(a_recipe(model), tmp_path)
    assert said.startswith("the package no_such_package is not installed; make install-cpu and run .venv-cpu/bin/")
    assert said.endswith("or pip install -e '.[drafters]'")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"architectures": ["Qwen3ForCausalLM"]}, "architectures: is a Qwen3ForCausalLM; give a LlamaForCausalLM"),
        ({"architectures": None}, "architectures: is a none"),
        ({"attention_bias": True}, "attention_bias: found True; give a Llama-type target without biases"),
        ({"hidden_act": "gelu"}, "hidden_act: found 'gelu'"),
        ({"rope_scaling": {"rope_type": "llama3"}}, "rope_type: found 'llama3'"),
    ],
)
def test_another_architecture_is_refused(
    model: Path, tmp_path: Path, changes: dict[str, object], expected: str
) -> None:
    configured(model, **changes)
    assert expected in refused(a_recipe(model), tmp_path)


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        ("tokenizer.json", "no tokenizer.json in"),
        ("chat_template.jinja", "no chat template in"),
        ("model.safetensors", "no weights in"),
        ("config.json", "no model in"),
    ],
)
def test_a_file_that_is_missing_is_named(model: Path, tmp_path: Path, lost: str, expected: str) -> None:
    (model / lost).unlink()
    assert expected in refused(a_recipe(model), tmp_path)


def test_a_template_inside_the_tokenizers_settings_counts(model: Path, tmp_path: Path) -> None:
    (model / "chat_template.jinja").unlink()
    (model / "tokenizer_config.json").write_text('{"chat_template": "x"}', encoding="utf-8")
    checks.check(a_recipe(model), tmp_path, workers=1)


def test_a_damaged_config_is_named(model: Path, tmp_path: Path) -> None:
    (model / "config.json").write_text("{", encoding="utf-8")
    assert "config.json: cannot be read" in refused(a_recipe(model), tmp_path)


def test_a_layer_that_the_target_does_not_have_is_refused(model: Path, tmp_path: Path) -> None:
    recipe = a_recipe(model).model_copy(update={"head": HeadRecipe(layers=(1, 2, 5))})

    assert refused(recipe, tmp_path).startswith("layers: the recipe reads layer 5, the target has 4; name layers")


def test_what_a_head_is_to_start_from_or_to_learn_from_must_be_there(model: Path, tmp_path: Path) -> None:
    def with_head(**keys: object) -> Recipe:
        return a_recipe(model).model_copy(update={"head": HeadRecipe(**keys)})

    assert "head.start: no head in" in refused(with_head(start=str(tmp_path / "no-head")), tmp_path)
    other = tmp_path / "other" / "corpus"
    assert "head.beside: no corpus in" in refused(with_head(beside=(str(other),)), tmp_path)
    stamp.hold(a_recipe(model).model_copy(update={"target": "another"}), other)
    said = refused(with_head(beside=(str(other),)), tmp_path)
    assert f"was written by another, not by {model}; give a corpus of the same target" in said
    stamp.hold(a_recipe(model), tmp_path / "same")
    checks.check(with_head(beside=(str(tmp_path / "same"),)), tmp_path, workers=1)


def test_too_little_memory_is_found_before_any_work(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = checks.memory_bytes(a_recipe(model), CONFIG, model, 1)
    assert needed == checks.ROOM_FOR_TRAINING  # the files of this target are empty
    memory = psutil.virtual_memory()._replace(available=needed - 1)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    assert refused(a_recipe(model), tmp_path).startswith("about 3.0 GiB of memory are needed, 3.0 are free; free some")


def test_memory_of_writing_counts_caches_states_and_workers(model: Path) -> None:
    recipe = a_recipe(model, prompt_tokens=256, answer_tokens=256).model_copy(
        update={"corpus": CorpusRecipe(rows=4096, prompt_tokens=256, answer_tokens=256)}
    )
    # 4 layers x 2 heads x 16 wide, key and value in 2 bytes: 512 a token;
    # 3 kept layers (0, 2, 4) of 64, twice, in 2 bytes: 768
    assert checks.memory_bytes(recipe, CONFIG, model, 2) == 2 * 4096 * 512 * (512 + 768)


def test_too_little_disk_is_found_before_any_work(model: Path, tmp_path: Path) -> None:
    # a prompt and answer of 20 million tokens each, ten million times: no disk holds their states
    recipe = a_recipe(model, sampled_questions=10_000_000, answer_tokens=10_000_000)
    recipe = recipe.model_copy(update={"corpus": recipe.corpus.model_copy(update={"rows": 0})})
    said = refused(recipe, tmp_path)
    assert "of disk space in" in said
    assert "give the recipe a smaller corpus" in said
