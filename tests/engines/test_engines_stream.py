from __future__ import annotations

import json
from typing import Any

import pytest
from arrived import EVENT_STREAM, arrived, chunked, response, sized
from hypothesis import given
from hypothesis import strategies as st

from speclab.engines.base import Answer
from speclab.engines.stream import encodable, message, read, shown
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


def read_from(*pieces: bytes, lost: str | None = None, secrets: Any = ()) -> Answer:
    """Return the answer in these pieces of a response; each came a second after the one before, the first at 1 s."""
    answer = Answer(Prompt("chat", "chat/00", "Why?"), start_s=0.0)
    read(answer, arrived(*pieces), lost, secrets)
    return answer


def streamed(*parts: bytes) -> Answer:
    """Return the answer to a whole stream, each part of it a read of its own; the first part came at 2 s."""
    *first, last = [chunked(part) for part in parts]
    return read_from(EVENT_STREAM, *first, last + b"0\r\n\r\n")


def test_an_event_holds_as_many_tokens_as_the_running_count_rose_by() -> None:
    answer = streamed(
        line("", tokens=0),  # the role: no token yet
        line("a bc", tokens=4),
        line("", tokens=5),  # half a character: a token without text
        line("d", tokens=7, finish="stop"),
        line(tokens=7) + DONE,
    )
    assert (list(answer.event_s), list(answer.event_tokens)) == ([3.0, 4.0, 5.0], [4, 1, 2])
    assert (answer.prompt_tokens, answer.output_tokens, answer.finish_reason) == (53, 7, "stop")
    assert (answer.text, answer.error) == ("a bcd", None)
    assert (answer.reads, answer.merged_reads) == (3, 0)


def test_events_of_one_read_share_its_time_and_are_counted() -> None:
    two = line("a", tokens=1) + line("b", tokens=2)
    answer = streamed(two, line("c", tokens=3, finish="stop") + line(tokens=3) + DONE)
    assert (list(answer.event_s), list(answer.event_tokens)) == ([2.0, 2.0, 3.0], [1, 1, 1])
    assert (answer.reads, answer.merged_reads) == (2, 1)


def test_an_event_that_was_cut_has_come_with_its_last_byte() -> None:
    sent = line("a", tokens=1)
    answer = streamed(sent[:30], sent[30:-1], sent[-1:] + line("b", tokens=2, finish="stop") + DONE)
    assert list(answer.event_s) == [4.0, 4.0]


def test_without_any_usage_the_answer_is_an_error_that_names_the_option() -> None:
    answer = streamed(line("a") + line("b", finish="stop") + DONE)
    assert "sends no usage with a stream" in str(answer.error)
    assert "include_usage" in str(answer.error)
    assert answer.output_tokens is None


@pytest.mark.parametrize("last", [line(tokens=5), line("", tokens=5, finish="stop")], ids=["own chunk", "last chunk"])
def test_g11_usage_only_at_the_end_gives_a_total_and_the_times_of_the_text(last: bytes) -> None:
    answer = streamed(line(""), line("a"), line("b", finish="stop"), last + DONE)
    assert (answer.output_tokens, answer.error) == (5, None)
    assert (list(answer.event_s), list(answer.event_tokens)) == ([3.0, 4.0], [0, 0])


def test_a_stream_that_ends_early_says_after_how_many_tokens() -> None:
    answer = streamed(line("abc", tokens=3))
    assert answer.error == "the server closed the stream after 3 tokens, before its end"
    assert list(answer.event_tokens) == [3]
    assert answer.output_tokens is None


def test_a_connection_that_was_lost_says_after_how_many_tokens() -> None:
    answer = read_from(EVENT_STREAM, chunked(line("abc", tokens=3)), b"15\r\nda", lost="ConnectionResetError")
    assert answer.error == "the server closed the stream after 3 tokens (ConnectionResetError)"
    assert list(answer.event_tokens) == [3]


def test_what_the_load_cut_off_is_no_error_and_keeps_its_tokens() -> None:
    answer = read_from(EVENT_STREAM, chunked(line("abc", tokens=3)), b"15\r\nda")
    assert (answer.error, answer.output_tokens, list(answer.event_tokens)) == (None, None, [3])


def test_done_may_be_missing_and_what_follows_it_is_not_read() -> None:
    assert streamed(line("a", tokens=1, finish="stop")).error is None
    assert streamed(line("a", tokens=1, finish="stop") + DONE + b"data: nonsense\n\n").error is None


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"data: {not json\n\n", "no JSON object: {not json"),
        (b"data: [1, 2]\n\n", "no JSON object: "),
        (chunk(error={"message": "engine\ndead", "code": 500}), "reported an error in the stream: engine dead"),
        (chunk(error="engine dead"), "reported an error in the stream: engine dead"),
        (chunk(object="error", message="context length"), "reported an error in the stream: context length"),
        (b"event: error\ndata: queue full\n\n", "reported an error in the stream: queue full"),
        (b'event: error\ndata: {"detail": "queue full"}\n\n', "reported an error in the stream: queue full"),
        (line("a", tokens=5) + line("b", tokens=3), "fell from 5 to 3"),
        (chunk(choices=[], usage={"prompt_tokens": 1}), "no completion_tokens"),
        (chunk(choices="abc"), "no chat completion: choices is 'abc'"),
        (chunk(choices=["x"]), "no chat completion: choices[0] is 'x'"),
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
        (b"data: " + b"[" * 100_000 + b"\n\n", "no JSON object"),
    ],
)
def test_an_event_that_cannot_be_true_breaks_the_stream(sent: bytes, said: str) -> None:
    assert said in str(streamed(sent).error)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b'{"error": {"message": "model is loading"}}', "the server answered with no stream: model is loading"),
        (b'{"object": "error", "message": "too long", "code": 400}', "the server answered with no stream: too long"),
        (b"Bad gateway", "the server answered with no stream: Bad gateway"),
        (b"", "the server answered with no stream: no body"),
    ],
)
def test_g10_an_error_that_is_no_stream_keeps_the_servers_own_reason(sent: bytes, said: str) -> None:
    assert read_from(sized("200 OK", sent)).error == said


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (
            sized("429 Too Many Requests", json.dumps({"error": {"message": "slow\ndown"}}).encode()),
            "HTTP 429: slow down",
        ),
        (sized("503 Service Unavailable", b""), "HTTP 503: no body"),
        (sized("502 Bad Gateway", b"<html>bad</html>"), "HTTP 502: <html>bad</html>"),
        (sized("422 Unprocessable", b'{"detail": "max_tokens"}'), "HTTP 422: max_tokens"),
    ],
)
def test_a_refusal_says_its_status_and_its_reason(sent: bytes, said: str) -> None:
    assert read_from(sent).error == said


def test_chunks_that_are_none_are_named() -> None:
    answer = Answer(Prompt("chat", "chat/00", "Why?"), start_s=0.0)
    arrivals = arrived(EVENT_STREAM)
    arrivals.pieces.append(b"zz\r\n")
    arrivals.at_s.append(2.0)
    read(answer, arrivals, "closed")
    assert answer.error == "the server's answer cannot be read: a chunk does not begin with its size"


def test_g3_a_key_that_a_server_quotes_is_in_no_error_and_no_text() -> None:
    key = "sk-planted-" + "x" * 300  # longer than what is shown: half of it would be no longer recognised
    body = json.dumps({"error": {"message": f"quota for {key} used up"}}).encode()
    assert read_from(sized("429 No", body), secrets={key}).error == "HTTP 429: quota for [redacted] used up"
    parts = line("sk-plan", tokens=1), line("ted see http://a:b@c", tokens=2, finish="stop")
    spoken = read_from(response(*parts), secrets={"sk-planted"})
    assert spoken.text == "[redacted] see http://a:b@c"  # the model's own words stay


def test_the_largest_event_that_a_record_holds_is_taken() -> None:
    assert list(streamed(line("a", tokens=32767)).event_tokens) == [32767]


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
def test_whatever_a_server_sends_is_an_error_or_an_answer_that_a_record_holds(chunks: list[Any]) -> None:
    answer = read_from(response(*(chunk(**content) for content in chunks)))
    log = CellLog(start_s=0.0, answers=[answer], readings=[], lags_s=[], failure=None)
    assert to_table(log, 0).num_rows == 1


def test_half_a_surrogate_pair_is_replaced_and_two_halves_are_one_character() -> None:
    answer = streamed(line("a\ud83d", tokens=1) + line("\ude00b\ud800c", tokens=2, finish="\udc00"))
    assert answer.text == "a\U0001f600b\ufffdc"
    assert answer.finish_reason == "\ufffd"
    assert shown("\ud800 bad") == "\ufffd bad"


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
    answer = streamed(b": ping\r\nevent: message\r\nid: 1\r\n\r\n" + line("a", tokens=1).replace(b"\n", b"\r\n"))
    assert list(answer.event_tokens) == [1]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.data())
def test_where_the_network_cuts_the_stream_changes_no_event(tokens: list[int], data: st.DataObject) -> None:
    totals = [sum(tokens[: index + 1]) for index in range(len(tokens))]
    events = [line("\u00e9\U0001f600", tokens=total) for total in totals]
    if data.draw(st.booleans(), "uncut UTF-8"):
        events = [
            event.decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16").encode()
            for event in events
        ]
    if data.draw(st.booleans(), "CRLF"):
        events = [event.replace(b"\n", b"\r\n") for event in events]
    sent = response(*events, line("", tokens=totals[-1], finish="stop") + DONE)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=10)))
    pieces = [sent[start:end] for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True) if start < end]
    answer = read_from(*pieces)
    assert (answer.error, list(answer.event_tokens), answer.output_tokens) == (None, tokens, totals[-1])
    assert answer.text == "\u00e9\U0001f600" * len(tokens)
    ends, end = [], 0
    for piece in pieces:
        end += len(piece)
        ends.append(end)
    place = 0
    for event, at_s in zip(events, answer.event_s, strict=True):
        place = sent.index(event, place) + len(event)
        assert at_s == 1 + next(index for index, end in enumerate(ends) if end >= place)  # the piece with its last byte


def test_an_error_body_becomes_one_short_line() -> None:
    assert shown(message({"error": {"message": "too\n  long"}})) == "too long"
    assert message({"message": "m", "object": "error"}) == "m"
    assert message("<html>bad</html>") == "<html>bad</html>"
    assert len(shown("x" * 1000)) == 300
