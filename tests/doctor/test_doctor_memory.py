from __future__ import annotations

import pytest
from doctor_cases import H100, LLAMA_8B, TARGET, level, only
from hypothesis import given
from hypothesis import strategies as st

from speclab import prompts
from speclab.doctor import memory
from speclab.doctor.base import ModelFiles
from speclab.lab import SimulatedTarget
from speclab.roofline.transformers import transformer

LONGEST_CHAT = max(prompts.token_counts("llama-3.1", "chat").values())


def test_kv_of_one_token_of_llama_8b() -> None:
    # keys and values x 32 layers x 8 heads x 128 wide x 2 bytes
    assert memory.kv_bytes_per_token(LLAMA_8B) == 2 * 32 * 8 * 128 * 2 == 131072
    assert memory.kv_bytes_per_token(LLAMA_8B) == transformer("llama-3-8b").kv_bytes_per_token
    assert memory.kv_bytes_per_token(LLAMA_8B | {"head_dim": 64}) == 65536


def test_a_row_is_the_longest_prompt_and_answer_cut_at_the_model_length(case) -> None:
    assert memory.longest_row(case()) == LONGEST_CHAT + 512
    assert memory.longest_row(case(server={"max-model-len": 400})) == 400


def test_an_h100_holds_256_rows_of_this_length_and_not_a_gpu_of_24_gb(case) -> None:
    # 256 x about 600 tokens x 131072 bytes is 20 GB; 0.9 x 80 - 16 leaves 56 GB, 0.9 x 24 - 16 leaves 5.6 GB
    assert level(memory.kv_room(case())) == "fine"
    small = H100.model_copy(update={"memory_bytes": 24 * 10**9})
    found = only(memory.kv_room(case(gpus=(small,))))
    assert found.level == "will mislead"
    assert "leaves 5.6 GB" in found.found
    tiny = H100.model_copy(update={"memory_bytes": 16 * 10**9})
    assert level(memory.kv_room(case(gpus=(tiny,)))) == "will fail"


def test_a_draft_model_takes_weights_and_a_cache_of_its_own(case) -> None:
    alone, with_draft = (only(memory.kv_room(case(method))).found for method in (None, "draft_model"))
    assert "leaves 56.0 GB" in alone
    assert "leaves 54.0 GB" in with_draft


def test_the_kv_space_of_a_cpu(case) -> None:
    name = "VLLM_CPU_KVCACHE_SPACE"
    assert level(memory.kv_room(case(gpus=(), environment={name: "40"}))) == "fine"
    assert level(memory.kv_room(case(gpus=(), environment={name: "2"}))) == "will mislead"
    assert level(memory.kv_room(case(gpus=()))) == "not known here"
    found = only(memory.kv_room(case(gpus=(), memory_bytes=20 * 10**9)))
    assert (found.level, "main memory leaves 4.0 GB" in found.found) == ("will mislead", True)


def test_a_kv_cache_that_a_flag_sizes(case) -> None:
    flag = "kv-cache-memory-bytes"
    assert level(memory.kv_room(case(server={flag: 40 * 10**9}))) == "fine"
    found = only(memory.kv_room(case(gpus=(), server={flag: 2 * 10**9})))
    assert (found.level, f"{flag} 2000000000 leaves 2.0 GB" in found.found) == ("will mislead", True)
    both = case(gpus=(), server={flag: 40 * 10**9}, environment={"VLLM_CPU_KVCACHE_SPACE": "2"})
    assert level(memory.kv_room(both)) == "will mislead"  # the variable has the last word


def test_servers_that_are_up_at_once_share_the_memory(case) -> None:
    alone = case(gpus=(), memory_bytes=40 * 10**9, server={"kv-cache-memory-bytes": 10**9})
    assert "take 17.0 GB of 40.0 GB" in only(memory.main_memory(alone)).found
    lab = alone.lab.model_copy(update={"side_by_side": True, "arms": ("baseline", "a", "b")})
    found = only(memory.main_memory(type(alone)(lab, alone.arm, alone.baseline, alone.machine)))
    assert found.level == "will fail"
    assert "of 3 servers at once take 51.0 GB of 40.0 GB" in found.found


def test_weights_that_main_memory_does_not_hold(case) -> None:
    assert memory.main_memory(case()) == []
    assert level(memory.main_memory(case(gpus=(), memory_bytes=15 * 10**9))) == "will fail"
    assert level(memory.main_memory(case(gpus=(), memory_bytes=17 * 10**9))) == "fine"


def test_a_shape_that_is_not_known_is_not_guessed(case) -> None:
    absent = {TARGET: ModelFiles(place="hub", where="the hub's cache")}
    assert level(memory.kv_room(case(models=absent))) == "not known here"


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [((H100,), "fine"), ((), "will mislead"), ((H100.model_copy(update={"name": "NVIDIA A10G"}),), "will mislead")],
)
def test_another_device_than_the_labs(case, gpus, expected) -> None:
    made = case(gpus=gpus)
    lab = made.lab.model_copy(update={"simulated": SimulatedTarget(device="h100-sxm", shape="llama-3-8b", answers={})})
    assert level(memory.device(type(made)(lab, made.arm, made.baseline, made.machine))) == expected
    assert memory.device(made) == []


def test_a_disk_that_is_full(case) -> None:
    assert level(memory.disk(case(disk_bytes={"records": 10**8}))) == "will fail"
    assert level(memory.disk(case(disk_bytes={}))) == "not known here"
    assert level(memory.disk(case())) == "fine"


@given(st.integers(1, 128), st.integers(1, 8), st.sampled_from([64, 80, 128]))
def test_kv_grows_with_layers_and_key_value_heads(layers: int, groups: int, width: int) -> None:
    config = {"hidden_size": 32 * width, "num_attention_heads": 32, "num_key_value_heads": groups,
              "num_hidden_layers": layers}  # fmt: skip
    one = {**config, "num_key_value_heads": 1, "num_hidden_layers": 1}
    assert memory.kv_bytes_per_token(config) == layers * groups * memory.kv_bytes_per_token(one)
