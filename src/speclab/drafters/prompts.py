"""The prompts of the corpus: written by the target, by templates, and from the standard library."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from speclab import whole
from speclab.drafters import fresh, library, questions
from speclab.drafters.overlap import Judged, words
from speclab.drafters.recipe import Recipe
from speclab.prompts.workloads import WORKLOADS

AT_ONCE = 128
"""Openings per batch."""


@dataclass(frozen=True, slots=True)
class CorpusPrompt:
    """One prompt of the corpus."""

    kind: str
    text: str


def judged() -> Judged:
    """Return what the drafters are judged on: every prompt of the labs' workloads, and the fresh questions."""
    texts = [p.text for workload in WORKLOADS.values() for p in (*workload.measured(), *workload.warm_up())]
    return Judged([*texts, *fresh.QUESTIONS])


def openings(recipe: Recipe) -> dict[str, list[str]]:
    """Return the openings of user turns that the target continues, in batches by name."""
    corpus, known = recipe.corpus, questions.OPENINGS
    by_kind = {
        "question": [known[index % len(known)] for index in range(corpus.sampled_questions)],
        "stub": questions.stub_openings(corpus.sampled_stubs, recipe.seed),
    }
    return {
        f"{kind}-{start // AT_ONCE:03d}": openings_of_kind[start : start + AT_ONCE]
        for kind, openings_of_kind in by_kind.items()
        for start in range(0, len(openings_of_kind), AT_ONCE)
    }


def question_of(turn: str) -> str | None:
    """Return the question of a sampled turn, its first line; None if it is unusable."""
    question = turn.strip().splitlines()[0].strip() if turn.strip() else ""
    return question if 4 <= len(words(question)) <= 60 and question[-1:] in ".?!:" else None


def stub_of(turn: str) -> str | None:
    """Return the stub of a sampled turn, up to the end of its docstring; None if it has none or is not Python."""
    quote = next((quote for quote in ('"""', "'''") if quote in turn), None)
    if quote is None or turn.count(quote) < 2:
        return None
    end = turn.index(quote, turn.index(quote) + 3) + 3
    try:
        function = ast.parse(turn[:end] + "\n").body[-1]
    except (SyntaxError, ValueError):
        return None
    if not isinstance(function, ast.FunctionDef) or len(words(ast.get_docstring(function) or "")) < 4:
        return None
    return turn[:end] + "\n"


def collect(
    turns: dict[str, list[str]], tokens_of: Callable[[str], int], recipe: Recipe, say: Callable[[str], None]
) -> list[CorpusPrompt]:
    """Return the prompts of a corpus: none twice, none too long, none that shares a run of words with a judging text.

    Parameters
    ----------
    turns : dict[str, list[str]]
        What the target wrote after `openings`, by batch.
    tokens_of : callable
        Returns the tokens that the target reads when a text is the whole conversation.
    recipe : Recipe
        Says how many prompts of the other kinds to make.
    say : callable
        Called with a line for each source.
    """
    corpus, seed = recipe.corpus, recipe.seed
    generator, keep_out = random.Random(f"{seed}/tasks"), judged()
    seen: set[tuple[str, ...]] = set()
    kept: list[CorpusPrompt] = []
    known = list(library.functions()) if corpus.library_functions else []
    generator.shuffle(known)
    sources: dict[str, Iterable[tuple[str, str | None]]] = {
        "questions of its own": (("question", question_of(turn)) for turn in _of_kind(turns, "question")),
        "stubs of its own": (("completion", stub_of(turn)) for turn in _of_kind(turns, "stub")),
        "templates": (("templated", question) for question in questions.templated(corpus.templated_questions, seed)),
        "standard library": (
            questions.function_task(function.stub, function.body, generator)
            for function in known[: corpus.library_functions]
        ),
    }
    for name, candidates in sources.items():
        before, tried = len(kept), 0
        for kind, text in candidates:
            tried += 1
            if text is None or words(text) in seen or keep_out.shares(text):
                continue
            if tokens_of(text) <= corpus.prompt_tokens:
                seen.add(words(text))
                kept.append(CorpusPrompt(kind, text))
        say(f"{name}: {len(kept) - before} kept of {tried}")
    return kept


def _of_kind(turns: dict[str, list[str]], kind: str) -> Iterator[str]:
    return (turn for name, batch in sorted(turns.items()) if name.startswith(f"{kind}-") for turn in batch)


def save(kept: list[CorpusPrompt], file: Path) -> None:
    """Write prompts, a JSON object a line."""
    whole.write(file, "".join(json.dumps(asdict(prompt)) + "\n" for prompt in kept), "the corpus' prompts")


def read(file: Path) -> list[CorpusPrompt]:
    """Return the prompts of a file."""
    return [CorpusPrompt(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]
