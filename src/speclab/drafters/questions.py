"""What the target is asked, besides the questions it writes itself: this project's openings, templates and tasks."""

from __future__ import annotations

import random
from importlib import resources

OPENINGS = (
    "", "", "", "", "How do", "How can I", "How does", "How did", "How is", "How would you", "How long", "What is",
    "What are", "What happens", "What would", "What makes", "What should I", "What causes", "Which", "Why do", "Why is",
    "Why are", "Why did", "When", "Where", "Who", "Is it", "Are there", "Can you", "Could you explain", "Do I need",
    "Should I", "Explain how", "Explain why", "Explain the", "Explain to a child", "Describe the", "Describe how",
    "Compare", "Give me a list of", "Give me three", "Give me some advice", "List the", "Write a short",
    "Write a story",
    "Write a poem", "Write a letter", "Write an email", "Write a paragraph", "Write the", "Tell me about", "Suggest",
    "Plan a", "Help me", "I am", "I have", "I want to", "I need to", "I would like", "My", "Summarise", "Name",
    "Define",
    "Show that", "In simple words,", "Imagine", "Let's",
)  # fmt: skip
"""Openings of user turns, which the target continues."""

VERBS = (
    "count", "find", "get", "remove", "filter", "replace", "split", "merge", "sort", "reverse", "rotate", "swap",
    "shift",
    "group", "compare", "check", "is_valid", "convert", "encode", "decode", "format", "parse", "sum", "average",
    "multiply",
    "maximum", "minimum", "largest", "smallest", "longest", "shortest", "first", "last", "nth", "unique", "common",
    "missing", "repeated", "random", "print", "make", "build", "update", "insert", "collect", "flatten", "rank", "has",
)  # fmt: skip
THINGS = {
    "numbers": "List[int]", "values": "List[float]", "prices": "List[float]", "scores": "List[int]",
    "words": "List[str]",
    "names": "List[str]", "text": "str", "sentence": "str", "letters": "str", "digits": "int", "number": "int",
    "year": "int", "date": "str", "time": "str", "matrix": "List[List[int]]", "grid": "List[List[int]]",
    "pairs": "List[Tuple[int, int]]", "intervals": "List[Tuple[int, int]]", "items": "Dict[str, int]",
    "inventory": "Dict[str, int]", "students": "Dict[str, float]", "path": "str", "url": "str", "password": "str",
    "bits": "str", "colours": "List[str]", "points": "List[Tuple[float, float]]", "tree": "Optional[dict]",
    "stack": "List[int]", "queue": "List[int]", "graph": "Dict[str, List[str]]", "money": "float", "angle": "float",
    "temperature": "float", "distance": "float", "vowels": "str", "lines": "List[str]", "records": "List[dict]",
}  # fmt: skip
SECOND = ("", "", "", "n: int", "limit: int", "target: int", "other: {}", "key: str", "separator: str", "start: int")
RESULTS = ("int", "bool", "str", "float", "{}", "{}", "List[int]", "List[str]", "Dict[str, int]", "Optional[int]")
BEGINNINGS = ("", "", " ", " Return", " Given", " Check", "\n    ", "\n    Return", "\n    Given a", " Calculate")
STYLES = ('"""', '"""', "'''")


def stub_openings(count: int, seed: int) -> list[str]:
    """Return beginnings of function stubs, up to the docstring, which the target writes: half with type hints."""
    chance = random.Random(f"{seed}/stubs")
    return [_stub_opening(chance) for _ in range(count)]


def _stub_opening(chance: random.Random) -> str:
    verb, (thing, kind) = chance.choice(VERBS), chance.choice(list(THINGS.items()))
    second, result = chance.choice(SECOND).format(kind), chance.choice(RESULTS).format(kind)
    if chance.random() < 0.5:
        names = ", ".join(part.split(":")[0] for part in (thing, second) if part)
        head = f"def {verb}_{thing}({names}):"
        imports: list[str] = []
    else:
        parts = ", ".join(part for part in (f"{thing}: {kind}", second) if part)
        head = f"def {verb}_{thing}({parts}) -> {result}:"
        imports = [name for name in ("Dict", "List", "Optional", "Tuple") if name in head]
    above = f"from typing import {', '.join(imports)}\n\n\n" if imports else ""
    return f"{above}{head}\n    {chance.choice(STYLES)}{chance.choice(BEGINNINGS)}"


TEMPLATES = (
    "Explain {} to a beginner.", "Explain {} in two paragraphs.", "What should everyone know about {}?",
    "Why is {} important?", "What are common mistakes people make with {}?",
    "What are the most interesting facts about {}?",
    "Write a short story about {}.", "Write a poem about {}.", "Write the first paragraph of an essay on {}.",
    "Give me five tips about {}.", "Give me a short history of {}.", "How has {} changed over the last hundred years?",
    "How would you teach a class about {}?", "What questions do people often ask about {}, and what are the answers?",
    "What are the pros and cons of {}?", "Tell me something surprising about {}.", "How does {} work?",
    "How do I get started with {}?", "What do experts disagree on about {}?",
    "Describe {} to someone who has never heard of it.",
    "I am giving a talk about {}. Can you write an opening for me?", "Write a letter to a friend about {}.",
    "What would the world be like without {}?", "Summarise what is known about {} in simple words.",
    "My daughter asked me about {}. How can I explain it to her?", "Write a dialogue between two people about {}.",
    "Make a step-by-step plan for learning about {}.", "What is a common myth about {}, and what is the truth?",
    "How is {} different from what people expect?", "What does {} have to do with everyday life?",
    "Where can I see {}, and what should I look for?", "Compare {} with {}.", "What do {} and {} have in common?",
    "I have to choose between {} and {} for a school project. Which is easier, and why?",
    "How are {} and {} connected?",
)  # fmt: skip

REVISIONS = (
    "Add type annotations to this function.",
    "Rewrite this function with type hints for its parameters and its result.",
    "Add type hints to the code below and return the complete code.",
    "Please annotate the types in this Python function.",
    "Add a docstring in NumPy style to this function, and keep the code as it is.",
    "Rename the variables of this function so that they are easier to understand. Give back the whole function.",
    "Rewrite the following function so that it is easier to read.", "Add comments to this function.",
    "Add error handling to this function and answer with the whole function.",
    "Fix any mistake in this function. If there is none, give it back unchanged.",
)  # fmt: skip

EXPLANATIONS = (
    "What does this function do?", "Explain this Python function line by line.", "Write a unit test for this function.",
    "How could this function be improved?", "What could go wrong when this function is called?",
    "Explain the following code to a beginner.",
)  # fmt: skip


def topics() -> tuple[str, ...]:
    """Return the topics of templated questions."""
    return tuple(resources.files("speclab.drafters").joinpath("topics.txt").read_text(encoding="utf-8").splitlines())


def templated(count: int, seed: int) -> list[str]:
    """Return questions, each a template with one or two topics; all topics occur about equally often."""
    chance, known = random.Random(f"{seed}/templated"), topics()
    order: list[str] = []
    questions: list[str] = []
    while len(questions) < count:
        template = chance.choice(TEMPLATES)
        while len(order) < template.count("{}"):
            order += chance.sample(known, len(known))
        questions.append(template.format(*(order.pop() for _ in range(template.count("{}")))))
    return questions


def function_task(stub: str, body: str, chance: random.Random) -> tuple[str, str]:
    """Return kind and text of a task about a function; half are stubs to complete, like the lab's prompts."""
    kind = chance.choices(("completion", "revision", "explanation"), (5, 4, 1))[0]
    if kind == "completion":
        return kind, stub
    instruction = chance.choice(REVISIONS if kind == "revision" else EXPLANATIONS)
    return kind, f"{instruction}\n\n{(stub + body).strip()}"
