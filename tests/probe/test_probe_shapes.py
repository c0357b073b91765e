from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from speclab.errors import UserError
from speclab.probe.shapes import from_config, shape
from speclab.roofline.transformers import transformer


def test_a_known_shape_has_more_than_one_name() -> None:
    assert shape("llama-3.1-8b") == shape("llama-3-8b") == transformer("llama-3-8b")


def test_an_unknown_shape_is_told_the_known_ones() -> None:
    with pytest.raises(
        UserError, match=r"unknown shape 'gpt-2'; the known shapes: .*llama-3\.1-8b.*smollm2-135m, smollm2-135m-4l; or"
    ):
        shape("gpt-2")


def a_config(**others: object) -> SimpleNamespace:
    """Return what transformers knows of Llama 3.2 1B, or of something like it."""
    config = {
        "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "intermediate_size": 8192, "vocab_size": 128256,
        "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
    }  # fmt: skip
    return SimpleNamespace(**{**config, **others})


def test_a_configuration_gives_the_shape_that_the_cost_model_knows() -> None:
    known, found = transformer("llama-3.2-1b"), from_config("mine", a_config())
    assert found.slug == "mine"
    assert found.matmul_parameters == known.matmul_parameters
    assert found.kv_bytes_per_token == known.kv_bytes_per_token
    head = a_config(architectures=["LlamaForCausalLMEagle3"], num_hidden_layers=1, draft_vocab_size=32000)
    # q, k and v of 2 x 2048 by 2048 + 2 x 512, output, three of 2048 by 8192, fc of 3 x 2048 by 2048, and the LM head
    assert from_config("head", head).matmul_parameters == 12_582_912 + 4_194_304 + 50_331_648 + 12_582_912 + 65_536_000


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({"head_dim": 128}, "32 heads of 128 are not 2048 wide"),
        ({"attention_bias": True}, "its projections have a bias"),
    ],
)
def test_what_is_built_differently_is_refused(others: dict[str, object], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        from_config("other", a_config(**others))


def test_a_models_folder_needs_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"package transformers is not installed; .*pip install -e '\.\[probe\]'"):
        shape(str(tmp_path))
