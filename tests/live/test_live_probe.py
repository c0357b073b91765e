"""The probe's pass against transformers' own Llama, and a whole small probe: torch, but no vLLM and no model files."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from speclab.errors import UserError
from speclab.probe import record
from speclab.probe.plan import cut, plan
from speclab.probe.points import Point, core
from speclab.roofline.transformers import TRANSFORMERS, Transformer

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None,
        reason="torch or transformers is not installed here (pip install -e '.[probe,test]')",
    ),
]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Keep to one thread: two that wait for each other on a busy machine take a hundred times as long."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


SMALL = Transformer("small", "Small", 2, 64, 4, 2, 96, 128)


def test_a_pass_gives_the_logits_of_transformers_own_llama() -> None:
    import torch
    import transformers

    from speclab.probe import attention, step

    rows, context, positions, width = 3, 5, 4, SMALL.width // SMALL.heads
    torch.manual_seed(9)
    theirs = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=SMALL.vocabulary,
            hidden_size=SMALL.width,
            intermediate_size=SMALL.ff_width,
            num_hidden_layers=SMALL.layers,
            num_attention_heads=SMALL.heads,
            num_key_value_heads=SMALL.kv_heads,
            rms_norm_eps=step.NORM_EPSILON,
            rope_parameters={"rope_type": "default", "rope_theta": step.ROTATION_BASE},
        )
    ).eval()
    ids = torch.randint(SMALL.vocabulary, (rows, context + positions))
    with torch.inference_mode():
        for name, parameter in theirs.named_parameters():
            if "norm" in name:  # ones would hide a norm that is left out
                parameter.uniform_(0.5, 1.5)
        wanted = theirs(ids).logits[:, context:]
        past = theirs(ids[:, :context], use_cache=True).past_key_values
        cos, sin = step.rotation(context, positions, width, torch.float32, "cpu")
        groups = SMALL.heads // SMALL.kv_heads
        attend = attention.products(positions, context + positions, groups, torch.float32, "cpu")
        cache = tuple((_longer(layer.keys, positions), _longer(layer.values, positions)) for layer in past.layers)
        batch = step.PassInput(ids[:, context:], cache, cos, sin, attend)
        given = step.run(SMALL, _weights_of(theirs), batch)
    assert wanted.abs().max() > 0.1
    torch.testing.assert_close(given.view_as(wanted), wanted, rtol=1e-4, atol=1e-5)


def test_both_ways_of_attention_give_the_same(recwarn: pytest.WarningsRecorder) -> None:
    import torch

    from speclab.probe import attention

    torch.manual_seed(9)
    rows, positions, keys, width = 2, 3, 11, 16
    queries = torch.randn(rows, 6, positions, width)
    cached = torch.randn(2, rows, 2, keys, width)
    products = attention.products(positions, keys, 3, torch.float32, "cpu")(queries, *cached)
    # without a GPU, PyTorch warns that there is no flash kernel and takes a slow way to the same numbers
    torch.testing.assert_close(products, attention.flash(positions, keys)(queries, *cached), rtol=1e-5, atol=1e-6)
    recwarn.clear()


def test_the_first_new_position_does_not_see_the_second() -> None:
    import torch

    from speclab.probe import attention

    values = torch.zeros(1, 1, 3, 4)
    values[..., -1, :] = 1.0  # only the last key has a value
    seen = attention.products(2, 3, 2, torch.float32, "cpu")(torch.zeros(1, 2, 2, 4), torch.zeros(1, 1, 3, 4), values)
    assert seen[0, :, :, 0].tolist() == [[0.0, pytest.approx(1 / 3)]] * 2


@pytest.mark.parametrize("slug", ["smollm2-135m", "eagle3-head-8b"])
def test_weights_have_as_many_values_as_the_cost_model_counts(slug: str) -> None:
    import torch

    from speclab.probe import step

    small = replace(TRANSFORMERS[slug], width=64, heads=4, kv_heads=2, ff_width=96, vocabulary=64)
    shape = cut(replace(small, output_vocabulary=small.output_vocabulary and 32), 1)
    weights = step.random_weights(shape, torch.bfloat16, "cpu")
    matrices = [weights.embedding, weights.head, *([] if weights.fuse is None else [weights.fuse])]
    for layer in weights.layers:
        matrices += [layer.qkv, layer.output, layer.gate_up, layer.down]
    assert sum(matrix.numel() * 2 for matrix in matrices) == shape.resident_bytes
    assert all(matrix.float().std() == pytest.approx(0.02, rel=0.1) for matrix in matrices)


def test_a_small_probe_times_its_core_and_says_what_it_left_out(tmp_path: Path) -> None:
    from speclab.probe.run import run

    whole = plan(replace(SMALL, layers=4), 0.5e9, "float32", layers=2, sampling=True)
    planned = replace(whole, beyond=(*whole.beyond[:2], Point("step", 10**9, 1, 256)))  # the last takes days
    done = run(planned, "cpu", 60.0)
    assert {each.point for each in done.measured} >= set(core(sampling=True))
    assert all(0 < each.low_s <= each.median_s <= each.high_s for each in done.measured)
    assert done.measured[0].point == done.again.point == Point("step", 1, 1, 256)
    assert len(done.measured) == len(planned.core) + 2
    assert [each.reason for each in done.left_out] == ["memory"] * len(planned.too_big) + ["time"]
    assert planned.too_big
    record.write(tmp_path / "small.json", done)
    assert record.read(tmp_path / "small.json") == done
    table = record.frame(done).set_index(["part", "rows", "positions", "context"])
    assert table.loc[("step", 64, 4, 1024), "median_s"] > table.loc[("step", 1, 1, 256), "median_s"]
    assert table.loc[("step", 1, 1, 256), "whole_s"] > table.loc[("step", 1, 1, 256), "median_s"]


def test_too_little_time_is_one_line(tmp_path: Path) -> None:
    from speclab.probe.measure import measure

    with pytest.raises(UserError, match=r"--seconds: 0.1 s are too short: the smallest plan takes about \d+ s here"):
        measure(plan(replace(SMALL, vocabulary=4096), 1e9), "cpu", 0.1)


def test_a_models_folder_gives_its_shape(tmp_path: Path) -> None:
    from speclab.probe.shapes import shape

    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 64, "vocab_size": 128,
        "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1,
        "draft_vocab_size": 32,
    }  # fmt: skip
    folder = tmp_path / "my-head"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    found = shape(str(folder))
    assert (found.slug, found.layers, found.kv_width, found.vocabulary) == ("my-head", 1, 32, 128)
    assert (found.output_vocabulary, found.attention_inputs, found.fused_states) == (32, 2, 3)
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "gpt2"}), encoding="utf-8")
    with pytest.raises(UserError, match=r"config.json: not a shape that can be timed \(model_type is 'gpt2'\)"):
        shape(str(folder))


def test_the_command_prints_a_row_a_point_and_keeps_the_record(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "hidden_size": 64, "vocab_size": 128, "intermediate_size": 96,
        "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    out = tmp_path / "kept" / "record.json"
    arguments = ["probe", str(tmp_path), "--device", "cpu", "--layers", "1", "--seconds", "10", "--json", "--out"]
    done = subprocess.run(
        [sys.executable, "-m", "speclab.cli", *arguments, str(out)], capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    kept = record.read(out)
    assert [row["median_s"] for row in rows] == [each.median_s for each in kept.measured]
    assert {(row["shape"], row["layers"], row["layers_of_model"]) for row in rows} == {(tmp_path.name, 1, 2)}
    assert kept.made.packages["torch"]
    assert f"{sum(each.reason == 'time' for each in kept.left_out)} points left out: too little time" in done.stderr


def _longer(cached: object, positions: int) -> object:
    import torch

    return torch.nn.functional.pad(cached, (0, 0, 0, positions))


def _weights_of(model: object) -> object:
    import torch

    from speclab.probe import step

    inner = model.model  # type: ignore[attr-defined]
    layers = tuple(
        step.LayerWeights(
            each.input_layernorm.weight,
            torch.cat([getattr(each.self_attn, f"{name}_proj").weight for name in "qkv"]),
            each.self_attn.o_proj.weight,
            each.post_attention_layernorm.weight,
            torch.cat((each.mlp.gate_proj.weight, each.mlp.up_proj.weight)),
            each.mlp.down_proj.weight,
        )
        for each in inner.layers
    )
    return step.Weights(inner.embed_tokens.weight, layers, inner.norm.weight, model.lm_head.weight)  # type: ignore[attr-defined]
