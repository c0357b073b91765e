from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.engines.base import Answer
from speclab.engines.stream import AnswerStream, BrokenStream, encodable, message
from speclab.load.closed_loop import CellLog
from speclab.prompts.base import Prompt
from speclab.record.store import to_table


def line(content: str | None = None, *, tokens: int | None = None, finish: str | None = None) -> bytes:
    """Return one chunk as vLLM sends it; without a choice where there is no content."""
    chunk: dict[str, Any] = {"choices": []}
    if content is not None:
        chunk["choices"] = [{"index": 0, "delta": {"content": content}, "finish_reason": finish}]
    if tokens is not None:
        chunk["usage"] = {"prompt_tokens": 53, "completion_tokens": tokens, "total_tokens": 53 + tokens}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def chunk(**content: Any) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def fresh() -> tuple[Answer, AnswerStream]:
    answer = Answer(Prompt("chat", "chat/00", "Why?"), start_s=0.0)
    return answer, AnswerStream(answer)


def test_an_event_holds_as_many_tokens_as_the_running_count_rose_by() -> None:
    answer, stream = fresh()
    stream.feed(line("", tokens=0), 1.0)  # the role: no token yet
    stream.feed(line("a bc", tokens=4), 2.0)
    stream.feed(line("", tokens=5), 3.0)  # half a character: a token without text
    stream.feed(line("d", tokens=7, finish="stop"), 4.0)
    stream.feed(line(tokens=7) + DONE, 5.0)
    stream.finish()
    assert (list(answer.event_s), list(answer.event_tokens)) == ([2.0, 3.0, 4.0], [4, 1, 2])
    assert (answer.prompt_tokens, answer.output_tokens, answer.finish_reason) == (53, 7, "stop")
    assert stream.text == "a bcd"


def test_without_any_usage_the_answer_is_an_error_that_names_the_option() -> None:
    answer, stream = fresh()
    stream.feed(line("a") + line("b", finish="stop") + DONE, 1.0)
    with pytest.raises(BrokenStream, match=r"sends no usage.*include_usage.*continuous_usage_stats"):
        stream.finish()
    assert answer.output_tokens is None


@pytest.mark.parametrize("last", [line(tokens=2), line("", tokens=2, finish="stop")], ids=["own chunk", "last chunk"])
def test_usage_only_at_the_end_gives_a_total_but_no_events(last: bytes) -> None:
    answer, stream = fresh()
    stream.feed(line("a") + line("b", finish="stop"), 1.0)
    stream.feed(last + DONE, 2.0)
    with pytest.raises(BrokenStream, match=r"only at a stream's end.*continuous_usage_stats"):
        stream.finish()
    assert (answer.output_tokens, list(answer.event_tokens)) == (2, [])


def test_a_stream_that_ends_early_says_after_how_many_tokens() -> None:
    answer, stream = fresh()
    stream.feed(line("abc", tokens=3), 1.0)
    with pytest.raises(BrokenStream, match="after 3 tokens, before its end"):
        stream.finish()
    assert list(answer.event_tokens) == [3]
    assert answer.output_tokens is None


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"data: {not json\n", "no JSON object: {not json"),
        (b"data: [1, 2]\n", "no JSON object: "),
        (
            b'data: {"error": {"message": "engine\\ndead", "code": 500}}\n',
            "reported an error in the stream: engine dead",
        ),
        (line("a", tokens=5) + line("b", tokens=3), "fell from 5 to 3"),
        (b'data: {"choices": [], "usage": {"prompt_tokens": 1}}\n', "no completion_tokens"),
        (chunk(choices="abc"), "no chat completion: choices is 'abc'"),
        (chunk(choices=["x"]), r"no chat completion: choices\[0\] is 'x'"),
        (chunk(choices=[{"delta": "x"}]), "no chat completion: delta is 'x'"),
        (chunk(choices=[{"delta": {"content": [{"text": "x"}]}}]), "no chat completion: content is "),
        (chunk(choices=[{"delta": {}, "finish_reason": 5}]), "no chat completion: finish_reason is '5'"),
        (chunk(usage=[1]), "no chat completion: usage is "),
        (chunk(usage="many"), "no chat completion: usage is 'many'"),
        (chunk(usage={"prompt_tokens": "7", "completion_tokens": 1}), "cannot be true: prompt_tokens is '7'"),
        (chunk(usage={"prompt_tokens": 10**12, "completion_tokens": 1}), "cannot be true: prompt_tokens is '1000"),
        (chunk(usage={"prompt_tokens": 7, "completion_tokens": True}), "cannot be true: completion_tokens is 'True'"),
        (chunk(usage={"prompt_tokens": 7, "completion_tokens": -1}), "cannot be true: completion_tokens is '-1'"),
        (line("a", tokens=1) + line("b", tokens=32769), "rose from 1 to 32769 in one event"),
        (b"data: " + b"[" * 100_000 + b"\n", "no JSON object"),
    ],
)
def test_a_line_that_cannot_be_true_breaks_the_stream(sent: bytes, said: str) -> None:
    _, stream = fresh()
    with pytest.raises(BrokenStream, match=said):
        stream.feed(sent, 1.0)


def test_the_largest_event_that_a_record_holds_is_taken() -> None:
    answer, stream = fresh()
    stream.feed(line("a", tokens=32767), 1.0)
    assert list(answer.event_tokens) == [32767]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["delta", "content", "finish_reason", "completion_tokens"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@given(st.lists(st.fixed_dictionaries({}, optional={"choices": JSON, "usage": JSON, "error": JSON}), max_size=4))
def test_whatever_a_server_sends_is_a_broken_stream_or_an_answer_that_a_record_holds(chunks: list[Any]) -> None:
    answer, stream = fresh()
    try:
        for content in chunks:
            stream.feed(chunk(**content), 1.0)
        stream.finish()
    except BrokenStream as broken:
        answer.error = str(broken)
    answer.text = stream.text
    log = CellLog(start_s=0.0, answers=[answer], readings=[], lags_s=[], failure=None)
    assert to_table(log, 0).num_rows == 1


def test_half_a_surrogate_pair_is_replaced_and_two_halves_are_one_character() -> None:
    answer, stream = fresh()
    stream.feed(line("a\ud83d", tokens=1) + line("\ude00b\ud800c", tokens=2, finish="\udc00"), 1.0)
    assert stream.text == "a\U0001f600b\ufffdc"
    assert answer.finish_reason == "\ufffd"
    assert message({"error": {"message": "\ud800 bad"}}) == "\ufffd bad"


@given(st.text(st.characters(exclude_categories=[])))
def test_encodable_text_keeps_all_that_can_be_written(text: str) -> None:
    cleaned = encodable(text)
    cleaned.encode()
    try:
        text.encode()
    except UnicodeEncodeError:
        assert "\ufffd" in cleaned or len(cleaned) < len(text)
    else:
        assert cleaned == text


def test_comments_and_other_fields_are_no_events() -> None:
    answer, stream = fresh()
    stream.feed(b": ping\r\nevent: message\r\nid: 1\r\n\r\n" + line("a", tokens=1).replace(b"\n", b"\r\n"), 1.0)
    assert list(answer.event_tokens) == [1]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.data())
def test_where_the_network_cuts_the_stream_changes_no_count(tokens: list[int], data: st.DataObject) -> None:
    totals = [sum(tokens[: index + 1]) for index in range(len(tokens))]
    sent = b"".join(line("x", tokens=total) for total in totals) + line("", tokens=totals[-1], finish="stop") + DONE
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=10)))
    answer, stream = fresh()
    for now, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(sent)], strict=True)):
        stream.feed(sent[start:end], float(now))
    stream.finish()
    assert list(answer.event_tokens) == tokens
    assert sum(answer.event_tokens) == answer.output_tokens
    assert list(answer.event_s) == sorted(answer.event_s)


def test_an_error_body_becomes_one_short_line() -> None:
    assert message({"error": {"message": "too\n  long"}}) == "too long"
    assert message({"message": "m", "object": "error"}) == "m"
    assert message("<html>bad</html>") == "<html>bad</html>"
    assert len(message("x" * 1000)) == 300
