"""What drafters are judged by is not in what they learn from, shown on the real prompts of the labs."""

from __future__ import annotations

import json

import pytest

from speclab import paths
from speclab.drafters import prompts, questions
from speclab.drafters.fresh import QUESTIONS
from speclab.drafters.overlap import Judged, words
from speclab.drafters.recipe import CorpusRecipe, Recipe
from speclab.prompts.workloads import WORKLOADS

RECIPE = Recipe(
    name="tiny",
    target="models/tiny",
    corpus=CorpusRecipe(
        sampled_questions=0, sampled_stubs=0, templated_questions=400, library_functions=400, prompt_tokens=10_000
    ),
)
EVERY = [p.text for workload in WORKLOADS.values() for p in (*workload.measured(), *workload.warm_up())]


def collected(turns: dict[str, list[str]], recipe: Recipe = RECIPE) -> list[str]:
    return [each.text for each in prompts.collect(turns, len, recipe, lambda line: None)]


@pytest.fixture(scope="module")
def corpus() -> list[str]:
    return collected({})


def test_no_prompt_of_a_lab_gets_through_even_where_the_target_itself_writes_it() -> None:
    none = RECIPE.model_copy(update={"corpus": CorpusRecipe(templated_questions=0, library_functions=0)})
    assert len(EVERY) > 2 * 164 + 40
    stubs = [p.text for p in (*WORKLOADS["completion"].measured(), *WORKLOADS["completion"].warm_up())]
    asked = [p.text for p in (*WORKLOADS["chat"].measured(), *WORKLOADS["chat"].warm_up())]
    continued = [f"{stub}    return None\n\nPlease finish it." for stub in stubs]
    leaks = {"question-000": [*asked, *QUESTIONS], "stub-000": stubs, "stub-001": continued}
    assert collected(leaks, none) == []
    harmless = {"question-000": [*asked, "How deep is the deepest lake, and who measured it first?"]}
    assert collected(harmless, none) == ["How deep is the deepest lake, and who measured it first?"]


def test_every_prompt_of_a_lab_is_recognised_inside_a_longer_text() -> None:
    keep_out = prompts.judged()
    assert [text for text in EVERY if not keep_out.shares(f"Here is what I found. {text} What do you think?")] == []


def test_templates_and_library_share_no_run_of_words_with_a_lab(corpus: list[str]) -> None:
    assert len(corpus) > 600
    seen = {words(text)[at : at + 13] for text in EVERY for at in range(max(1, len(words(text)) - 12))}
    shared = [t for t in corpus if any(words(t)[at : at + 13] in seen for at in range(max(1, len(words(t)) - 12)))]
    assert shared == []
    assert len({words(text) for text in corpus}) == len(corpus)


def test_the_kept_held_out_prompts_are_none_of_a_labs() -> None:
    file = paths.drafters() / "smollm2-135m" / "held_out.jsonl"
    if not file.exists():
        pytest.skip("no drafter is kept yet: `make drafters` writes it with its held-out prompts")
    kept = [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()]
    keep_out = prompts.judged()
    assert len(kept) >= 60
    assert [text for text in kept if keep_out.shares(text)] == []


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("Why, is the SEA salty while most lakes are not?", True),
        ("I wonder why is the sea salty while others are fresh", True),  # six words in a row of a short question
        ("Why is the sea blue?", False),
        ("a b c d e f g h i j k l m", True),
        ("x a b c d e f g h i j k l", False),  # twelve of a long text
    ],
)
def test_a_text_is_known_by_half_its_words_or_by_thirteen(text: str, shares: bool) -> None:
    long = "a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3"
    assert Judged(["Why is the sea salty while most lakes are not?", long]).shares(text) is shares


@pytest.mark.parametrize(
    ("turn", "stub"),
    [
        ('def f(a):\n    """Return a with every digit doubled."""\n    return a\n',
         'def f(a):\n    """Return a with every digit doubled."""\n'),
        ('def f(a):\n    """Return it."""\n', None),  # too little to go on
        ('def f(a):\n    """Return a with every digit', None),
        ("def f(a):\n    return a\n", None),
        ('def f(a:\n    """Return a with every digit doubled."""\n', None),
        ('x = 1\n"""Return a with every digit doubled."""\n', None),
    ],
)  # fmt: skip
def test_a_sampled_stub_ends_with_its_docstring(turn: str, stub: str | None) -> None:
    assert prompts.stub_of(turn) == stub


@pytest.mark.parametrize(
    ("turn", "question"),
    [
        ("How do tides work in a bay?\nTell me all.", "How do tides work in a bay?"),
        ("How do tides", None),
        ("How do tides work in a bay, and then", None),
        ("", None),
    ],
)
def test_a_sampled_question_is_one_whole_line(turn: str, question: str | None) -> None:
    assert prompts.question_of(turn) == question


def test_what_is_asked_follows_from_the_seed_alone() -> None:
    assert questions.templated(50, 9) == questions.templated(50, 9) != questions.templated(50, 10)
    assert questions.stub_openings(50, 9) == questions.stub_openings(60, 9)[:50]
    assert len(set(questions.topics())) == len(questions.topics()) > 400
    openings = prompts.openings(Recipe(name="a", target="b"))
    assert sum(map(len, openings.values())) == CorpusRecipe().sampled_questions + CorpusRecipe().sampled_stubs
