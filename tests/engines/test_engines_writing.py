from __future__ import annotations

from speclab.engines.writing import parsed


def step(*logprobs: float) -> dict[str, object]:
    return {"token": "x", "logprob": logprobs[0], "top_logprobs": [{"token": "t", "logprob": p} for p in logprobs]}


def test_a_completion_becomes_text_tokens_and_gaps() -> None:
    written = parsed(
        "chat/1",
        {
            "choices": [
                {
                    "message": {"content": "Hi."},
                    "finish_reason": "stop",
                    "token_ids": [5, 6],
                    "logprobs": {"content": [step(-0.25, -2.0), step(-1.5, -1.0)]},
                }
            ]
        },
    )
    assert (written.text, written.finish_reason, written.error) == ("Hi.", "stop", None)
    assert written.token_ids == (5, 6)
    assert written.gaps == (1.75, 0.5), "the gap is between the two highest, whichever of them was taken"


def test_a_server_without_tokens_or_logprobs_still_gives_text() -> None:
    written = parsed("chat/1", {"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]})
    assert (written.text, written.token_ids, written.gaps) == ("Hi.", None, None)


def test_text_that_no_file_holds_is_replaced() -> None:
    written = parsed("chat/1", {"choices": [{"message": {"content": "a\ud800"}, "finish_reason": "stop"}]})
    assert written.text == "a\ufffd"
    assert written.model_dump_json()
