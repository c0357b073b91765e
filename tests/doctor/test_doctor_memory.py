from __future__ import annotations

import pytest
from doctor_cases import H100, HEAD, LLAMA_8B, TARGET, files, level, only
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
    assert case().longest_row == LONGEST_CHAT + 512
    assert case(server={"max-model-len": 400}).longest_row == 400


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


L40S = H100.model_copy(update={"name": "NVIDIA L40S", "memory_bytes": 48 * 2**30})


def in_parallel(case, gpus: int = 2, weights: int = 65_500_000_000, **sizes: int):
    server = {f"{name.replace('_', '-')}-size": size for name, size in sizes.items()}
    models = {TARGET: files(weights, num_hidden_layers=64, num_key_value_heads=8)}
    return case(server=server, gpus=(L40S,) * gpus, models=models)


def test_f7_weights_of_65_gb_fit_two_gpus_of_48_gib_in_tensor_parallel(case) -> None:
    found = only(memory.kv_room(in_parallel(case, tensor_parallel=2)))
    # 0.9 x 51.5 GB - 32.75 GB = 13.6 GB on each; a token's 64 x 2 x 8 x 128 x 2 = 262,144 bytes are 131,072 on each
    assert "leaves 13.6 GB" in found.found
    longest = LONGEST_CHAT + 512
    assert f"256 rows of up to {longest} tokens need {256 * longest * 131072 / 1e9:.1f} GB on each of 2 GPUs" in (
        found.found
    )
    assert level(memory.kv_room(in_parallel(case))) == "will fail"


@pytest.mark.parametrize(
    "form", [{"tp": 2}, {"-tp": "2"}, {"tensor_parallel_size": 2}, {"--tensor-parallel-size=2": True}]
)
def test_f7_in_every_form(case, form) -> None:
    made = in_parallel(case)
    lab = made.lab.model_copy(update={"server": made.lab.server | form})
    found = only(memory.kv_room(type(made)(lab, made.arm, made.baseline, made.machine)))
    assert "leaves 13.6 GB" in found.found


@pytest.mark.parametrize(
    ("sizes", "leaves"),
    [
        ({"pipeline_parallel": 2}, "leaves 13.6 GB"),
        ({"tensor_parallel": 2, "pipeline_parallel": 2}, "leaves 30.0 GB"),
        ({"tensor_parallel": 2, "data_parallel": 2}, "leaves 13.6 GB"),  # each replica holds all
    ],
)
def test_f7_pipelines_divide_and_replicas_do_not(case, sizes, leaves) -> None:
    assert leaves in only(memory.kv_room(in_parallel(case, gpus=4, **sizes))).found


def test_f7_replicas_divide_the_requests(case) -> None:
    found = only(memory.kv_room(in_parallel(case, gpus=4, tensor_parallel=2, data_parallel=2))).found
    assert found.startswith("128 rows of up to")


def test_f7_a_kv_head_is_never_divided(case) -> None:
    gpus = (L40S,) * 16
    models = {TARGET: files(16_000_000_000)}  # 8 heads: on 16 GPUs each is there twice
    need = [only(memory.kv_room(case(server={"tp": size}, gpus=gpus, models=models))).found.split(" need ")[1]
            for size in (8, 16)]  # fmt: skip
    assert need[0].split(" on ")[0] == need[1].split(" on ")[0]
    halved = only(memory.kv_room(case(server={"tp": 16, "dcp": 2}, gpus=gpus, models=models))).found.split(" need ")[1]
    assert float(halved.split()[0]) == pytest.approx(float(need[1].split()[0]) / 2, abs=0.06)


def test_f7_a_drafter_is_divided_by_its_own_group(case) -> None:
    made = case("eagle3", server={"tp": 2}, gpus=(H100, H100))
    assert "leaves 63.5 GB" in only(memory.kv_room(made)).found  # 72 - 8 - 0.5
    whole = made.arm.speculation.model_copy(update={"draft_tensor_parallel_size": 1})
    alone = made.arm.model_copy(update={"speculation": whole})
    assert "leaves 63.0 GB" in only(memory.kv_room(type(made)(made.lab, alone, made.baseline, made.machine))).found
    assert HEAD in made.machine.models


def test_f7_all_replicas_divide_the_experts(case) -> None:
    moe = {"num_local_experts": 8, "intermediate_size": 14336}  # Mixtral 8x7B: 45.1 of 46.7 billion
    assert memory.expert_share(LLAMA_8B | moe | {"vocab_size": 32000}) == pytest.approx(45.1 / 46.7, abs=0.002)
    assert memory.expert_share(LLAMA_8B) == 0
    models = {TARGET: files(93_400_000_000, vocab_size=32000, **moe)}
    flags = {"tp": 2, "dp": 2, "ep": True}
    dense, mixed = (
        only(memory.kv_room(case(server=flags, gpus=(H100,) * 4, models=each))).found
        for each in ({TARGET: files(93_400_000_000)}, models)
    )
    assert "leaves 25.3 GB" in dense  # 72 - 46.7
    assert "leaves 47.8 GB" in mixed  # 72 - 45.1 / 46.7 x 93.4 / 4 - 1.6 / 46.7 x 93.4 / 2


def test_f7_a_latent_cache_is_not_divided(case) -> None:
    latent = {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
    assert memory.kv_bytes_per_token(LLAMA_8B | latent) == 32 * 576 * 2
    assert memory.kv_heads(LLAMA_8B | latent) == 1


def test_f7_more_gpus_than_there_are(case) -> None:
    assert memory.gpus(in_parallel(case)) == []
    assert level(memory.gpus(in_parallel(case, tensor_parallel=2))) == "fine"
    found = only(memory.gpus(in_parallel(case, tensor_parallel=2, pipeline_parallel=2)))
    assert (found.level, found.found) == ("will fail", "4 for tensor parallel 2 x pipeline parallel 2; 2 here")
    hidden = case(server={"tp": 2}, gpus=(L40S,) * 2, environment={"CUDA_VISIBLE_DEVICES": "1"})
    assert level(memory.gpus(hidden)) == "will fail"
    assert level(memory.gpus(case(server={"tp": 4, "nnodes": 2}, gpus=(L40S,) * 2))) == "not known here"
