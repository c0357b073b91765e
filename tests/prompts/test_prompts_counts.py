from __future__ import annotations

import pytest

from speclab.errors import UserError
from speclab.prompts import load, summary, token_counts
from speclab.prompts.counts import read_rows
from speclab.prompts.tokens import COUNTERS, count, llama_31_chat, smollm2_chat
from speclab.prompts.workloads import WORKLOADS


@pytest.mark.parametrize("tokens", COUNTERS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_prompt_has_its_count(tokens: str, workload: str):
    prompts = load(workload, seed=9)
    counts = token_counts(tokens, workload)
    assert set(counts) == {prompt.id for prompt in (*prompts.measured, *prompts.warm_up)}
    # the templates alone are 35 and 30 tokens, and each further token holds at least one byte of the message
    texts = {prompt.id: prompt.text for prompt in (*prompts.measured, *prompts.warm_up)}
    assert all(30 < counts[name] <= 35 + len(text.encode()) for name, text in texts.items())


def test_no_count_is_stored_twice_or_for_nobody():
    rows = [(row["tokens"], row["workload"], row["id"]) for row in read_rows()]
    assert len(set(rows)) == len(rows) == len(COUNTERS) * (40 + 164 + 164 + 3 * 8)


@pytest.mark.parametrize("tokens", COUNTERS)
def test_stored_counts_are_what_the_tokenizer_gives(tokens: str):
    try:
        counted = count(tokens)
    except ImportError as error:
        pytest.skip(f"the tokenizer of {tokens} is not installed: {error}")
    for workload in WORKLOADS:
        assert {name: n for (of, name), n in counted.items() if of == workload} == token_counts(tokens, workload)


@pytest.mark.parametrize(("tokens", "template"), [("llama-3.1", 35), ("smollm2", 30)])
def test_the_template_alone(tokens: str, template: int):
    try:
        counter = COUNTERS[tokens]()
    except ImportError as error:
        pytest.skip(f"the tokenizer of {tokens} is not installed: {error}")
    assert counter("") == template
    # each digit of SmolLM2's is a token; Llama 3 takes up to three together
    assert counter("2026") - template == {"llama-3.1": 2, "smollm2": 4}[tokens]


def test_llama_3_1_strips_the_message_and_adds_both_dates():
    assert llama_31_chat("\n\ndef f():\n") == (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"
        "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\ndef f():<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )


def test_smollm2_adds_its_system_message_and_strips_nothing():
    assert smollm2_chat("hi\n") == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nhi\n<|im_end|>\n<|im_start|>assistant\n"
    )


def test_summary_beside_the_published_lengths():
    table = summary("llama-3.1").set_index("workload")
    assert table["published_mean_tokens"].to_dict() == {"chat": 53, "completion": 122, "revision": 258}
    assert table["prompts"].to_dict() == {"chat": 40, "completion": 164, "revision": 164}
    # counted independently of this code: the 164 stubs through the chat template have a mean of 165.4 tokens
    assert table.loc["completion", "mean_tokens"] == pytest.approx(165.4, abs=0.05)
    assert (table["min_tokens"] <= table["mean_tokens"]).all()
    assert (table["mean_tokens"] <= table["max_tokens"]).all()


def test_summary_leaves_the_warm_up_out():
    counts = token_counts("smollm2", "chat")
    measured = [n for name, n in counts.items() if name.startswith("chat/")]
    row = summary("smollm2").set_index("workload").loc["chat"]
    assert row["mean_tokens"] == pytest.approx(sum(measured) / 40)
    assert (row["min_tokens"], row["max_tokens"]) == (min(measured), max(measured))


def test_unknown_names_say_what_there_is():
    with pytest.raises(UserError, match=r"no token counts for 'gpt-2'; counts are stored for llama-3.1, smollm2"):
        token_counts("gpt-2", "chat")
    with pytest.raises(UserError, match=r"no token counts for 'gpt-2'"):
        summary("gpt-2")
    with pytest.raises(UserError, match=r"unknown workload 'poetry'; the workloads: chat, completion, revision"):
        token_counts("smollm2", "poetry")
    with pytest.raises(UserError, match=r"unknown tokens 'gpt-2'; the tokenizers here: llama-3.1, smollm2"):
        count("gpt-2")
