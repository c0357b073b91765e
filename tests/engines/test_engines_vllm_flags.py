from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.engines.vllm_flags import OTHER_NAMES, normalised, of, words
from speclab.errors import UserError
from speclab.lab import Arm, Lab, Target


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"max_num_seqs": 6}, {"max-num-seqs": 6}),
        ({"--max-num-seqs": "6"}, {"max-num-seqs": 6}),
        ({"--max_num_seqs=6": True}, {"max-num-seqs": 6}),
        ({"-tp": 2}, {"tensor-parallel-size": 2}),
        ({"tp": "2"}, {"tensor-parallel-size": 2}),
        ({"O3": True}, {"optimization-level": 3}),
        ({"-O": 0}, {"optimization-level": 0}),
        ({"no-enable-prefix-caching": True}, {"enable-prefix-caching": False}),
        ({"--no_enable_prefix_caching": False}, {"enable-prefix-caching": True}),
        ({"max-model-len": "8k"}, {"max-model-len": 8000}),
        ({"kv-cache-memory-bytes": "1.5g"}, {"kv-cache-memory-bytes": 1_500_000_000}),
        ({"max-num-batched-tokens": "2K"}, {"max-num-batched-tokens": 2048}),
        ({"gpu-memory-utilization": "0.9"}, {"gpu-memory-utilization": 0.9}),
        ({"cudagraph_capture_sizes": 8}, {"cudagraph-capture-sizes": [8]}),
        ({"revision": "007"}, {"revision": "007"}),
        ({"chat-template": "8k"}, {"chat-template": "8k"}),
    ],
)
def test_f9_a_flag_has_one_form_however_it_is_written(written: dict[str, Any], meant: dict[str, Any]) -> None:
    assert normalised(written) == meant


CONFIG = {"compilation-config": {"max_cudagraph_capture_size": 42}}


@pytest.mark.parametrize(
    "written",
    [
        CONFIG,
        {"compilation_config": '{"max_cudagraph_capture_size": 42}'},
        {"-cc": {"max_cudagraph_capture_size": 42}},
        {"compilation-config.max_cudagraph_capture_size": 42},
        {"--compilation_config.max_cudagraph_capture_size": "42"},
        {"cc.max_cudagraph_capture_size=42": True},
        {"-cc.max_cudagraph_capture_size": 42},
    ],
)
def test_f9_a_configuration_is_a_mapping_however_it_is_written(written: dict[str, Any]) -> None:
    assert normalised(written) == CONFIG


def test_f9_sizes_are_written_out_in_json_but_not_in_its_strings() -> None:
    read = normalised({"kv-transfer-config": '{"bytes": 80m, "name": "8k"}'})
    assert read == {"kv-transfer-config": {"bytes": 80_000_000, "name": "8k"}}


def test_f9_a_dotted_key_with_a_plus_joins_the_list() -> None:
    written = {"cc.custom_ops+": "none,+quant", "cc": {"custom_ops": ["all"]}}
    assert normalised(written) == {"compilation-config": {"custom_ops": ["all", "none", "+quant"]}}


def test_f9_a_flag_in_two_forms_is_refused() -> None:
    with pytest.raises(UserError, match=r"max-num-seqs is given twice, as 'max-num-seqs' and as 'max_num_seqs'"):
        normalised({"max-num-seqs": 6, "max_num_seqs": 8})
    with pytest.raises(UserError, match=r"dtype is 'half', which has no a\.b"):
        normalised({"dtype": "half", "dtype.a.b": 1})


def made(server: dict[str, Any], arms: dict[str, Any]) -> tuple[Lab, Arm]:
    lab = Lab(title="Made", question="?", name="made", target=Target(model="m", tokens="llama-3.1"), arms=("x",),
              workloads=("chat",), concurrencies=(1,), server=server)  # fmt: skip
    return lab, Arm(lab="made", arm="x", label="X", server=arms)


def test_an_arm_overrides_the_labs_flags_in_whatever_form() -> None:
    assert of(*made({"seed": 1, "max_num_seqs": 8}, {"max-num-seqs": 4})) == {"seed": 1, "max-num-seqs": 4}


def test_f9_an_arms_dotted_key_changes_one_entry_and_its_mapping_all() -> None:
    shared = {"compilation-config": {"mode": 3, "cudagraph_mode": "FULL"}}
    lab, arm = made(shared, {"cc.mode": 0})
    assert of(lab, arm) == {"compilation-config": {"mode": 0, "cudagraph_mode": "FULL"}}
    assert lab.server == shared, "the lab's own mapping is left alone"
    assert of(*made(shared, {"cc": {"mode": 0}})) == {"compilation-config": {"mode": 0}}


def test_a_mistake_names_the_file_that_holds_it() -> None:
    with pytest.raises(UserError) as refused:
        of(*made({}, {"tp": 2, "tensor-parallel-size": 2}))
    assert refused.value.file is not None
    assert Path(refused.value.file).name == "x.yml"


def test_words_are_what_a_shell_takes() -> None:
    flags = normalised({"a": True, "b": False, "sizes": [1, 2], "cc.mode": 3, "c": "x"})
    assert words(flags) == ["--a", "--no-b", "--sizes", "1", "2", "--c", "x", "--compilation-config", '{"mode": 3}']


names = st.sampled_from(["max-num-seqs", "seed", "stream-interval", *OTHER_NAMES.values()])
values = st.one_of(st.integers(0, 10**6), st.booleans(), st.dictionaries(st.sampled_from("abc"), st.integers()))


@given(st.dictionaries(names, values))
def test_what_is_normal_stays_as_it_is_and_other_spellings_come_to_it(flags: dict[str, Any]) -> None:
    assert normalised(flags) == flags
    assert normalised({f"--{name.replace('-', '_')}": value for name, value in flags.items()}) == flags
