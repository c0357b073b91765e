from __future__ import annotations

from pathlib import Path

import pytest

from speclab.engines.base import EngineIdentity
from speclab.engines.writing import TextAnswer
from speclab.errors import UserError
from speclab.lab import Sampling
from speclab.metrics.text import compare
from speclab.record import provenance, text
from speclab.record.schema import Failure
from speclab.record.text import ArmText, TextRecord
from speclab.run import text_check


def an_arm(name: str, *answers: TextAnswer, failure: Failure | None = None) -> ArmText:
    identity = EngineIdentity(engine="vllm", version="vLLM 0.32.0", device="here")
    made = provenance.of(identity, provenance.now())
    return ArmText(arm=name, speculation=None, server={}, provenance=made, answers=answers, failure=failure)


def written(prompt: str, *tokens: int) -> TextAnswer:
    said = " ".join(map(str, tokens))
    gaps = tuple(0.1 * token for token in tokens)
    return TextAnswer(prompt_id=prompt, text=said, finish_reason="length", token_ids=tokens, gaps=gaps)


@pytest.fixture
def check() -> TextRecord:
    return TextRecord(
        lab="mini",
        engine="vllm",
        device="here",
        target="a/b",
        dtype="float32",
        sampling=Sampling(),
        environment={},
        prompts_sha256={"chat": "0"},
        arms=(
            an_arm("baseline", written("a", 1, 2, 3), written("b", 4)),
            an_arm("ngram", written("a", 1, 2, 3), written("b", 5)),
            an_arm("dead", failure=Failure(kind="hung", reason="no token")),
        ),
    )


def test_a_check_is_read_as_it_was_written(check: TextRecord, tmp_path: Path) -> None:
    file = text.write(tmp_path, check)
    assert file == tmp_path / "vllm-here" / "mini" / "text-float32.json"
    assert text.read(file) == check
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_its_table_has_a_row_for_each_arm_but_the_baseline(check: TextRecord) -> None:
    table = text_check.table(check).set_index("arm")
    assert list(table.index) == ["ngram", "dead"]
    assert table.loc["ngram", ["dtype", "prompts", "equal", "share", "first_token"]].tolist() == [
        "float32", 2, 1, 0.5, 0.0,
    ]  # fmt: skip
    assert table.loc["ngram", "gap"] == pytest.approx(0.4)
    assert table.loc["dead", "prompts"] == 0
    assert compare(check.arms[0].table(), check.arms[1].table())["equal"].tolist() == [True, False]


def test_an_arm_says_what_kept_it_from_writing(check: TextRecord) -> None:
    assert [arm.problem for arm in check.arms] == [None, None, "hung: no token"]
    half = an_arm("x", written("a", 1), TextAnswer(prompt_id="b", error="HTTP 500: no"))
    assert half.problem == "1 of 2 requests failed; the first: HTTP 500: no"


def test_what_is_not_a_check_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no text check here; make it: speclab text-check LAB"):
        text.read(tmp_path / "text-float32.json")
    (tmp_path / "text-float32.json").write_text("{}")
    with pytest.raises(UserError, match="not a text check"):
        text.read(tmp_path / "text-float32.json")


def test_a_forced_arm_has_no_text_to_check() -> None:
    with pytest.raises(UserError, match=r"eagle3-forced accepts tokens by chance: its text is not the target's"):
        text_check.run("cpu-smollm2", arms=["eagle3-forced"])
