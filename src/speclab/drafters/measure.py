"""Serve a drafter with real vLLM, and read from vLLM's counters how many drafts are accepted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from speclab import lab as labs
from speclab import paths
from speclab import prompts as lab_prompts
from speclab.config import Frozen
from speclab.drafters.fresh import QUESTIONS
from speclab.drafters.recipe import Recipe
from speclab.engines import vllm
from speclab.engines.base import Answer, Engine, EngineFailure, Reading
from speclab.errors import UserError
from speclab.lab import Arm, Lab, Sampling, Speculation, Target
from speclab.prompts.base import Prompt

TOKENS = 192
"""Most tokens of an answer."""
IN_FLIGHT = 4
HELD_OUT, STUBS = 60, 20


class Accepted(Frozen):
    """What vLLM's counters showed over one set of prompts."""

    drafter: str
    set: str
    prompts: int
    max_tokens: int
    drafts: int
    length: float
    """1 + accepted tokens a draft."""
    by_position: tuple[float, ...]
    """Share of drafts whose tokens up to each position were all accepted."""
    source: str


def sets(recipe: Recipe, notes: Path) -> dict[str, list[Prompt]]:
    """Return the three sets that a drafter is measured by: held-out prompts, fresh questions, function stubs.

    Parameters
    ----------
    recipe : Recipe
        Its seed selects the stubs.
    notes : Path
        Folder with ``held_out.jsonl``, which the training wrote; without it that set is left out.
    """
    prompts_by_set = {
        "fresh questions": [Prompt("chat", f"fresh/{number}", text) for number, text in enumerate(QUESTIONS)],
        "HumanEval stubs": list(lab_prompts.load("completion", recipe.seed).measured[:STUBS]),
    }
    file = notes / "held_out.jsonl"
    if not file.exists():
        return prompts_by_set
    held = [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()[:HELD_OUT]]
    return {
        "held out": [Prompt("chat", f"held-out/{number}", text) for number, text in enumerate(held)],
        **prompts_by_set,
    }


def lab_of(target: str, name: str | None = None) -> Lab:
    """Return the lab whose server flags a drafter is served with: the one named, else the first of this target.

    Raises
    ------
    UserError
        No lab has this target, or none has the name.
    """
    if name is not None:
        return labs.load(name)
    folder = (paths.root() / target).resolve()
    for lab in map(labs.load, labs.names()):
        if lab.engine == "vllm" and (paths.root() / lab.target.model).resolve() == folder:
            return lab
    raise UserError(f"no lab serves {target}", f"name one for its server flags: {', '.join(labs.names())}", key="--lab")


def run(
    recipe: Recipe, folder: Path, notes: Path, k: int, say: Callable[[str], None], lab: str | None = None
) -> list[Accepted]:
    """Serve a drafter and return its acceptance on each set, at temperature 0.

    Parameters
    ----------
    recipe : Recipe
        Of its target.
    folder : Path
        The drafter's; an EAGLE-3 head or a draft model.
    notes : Path
        As in `sets`.
    k : int
        Draft tokens at each step.
    say : callable
        Called with a line for each set.
    lab : str, optional
        The lab whose server flags are used; that of the recipe's target by default.

    Raises
    ------
    UserError
        No drafter there, no lab with its target, vLLM is not installed, or the server fails.
    """
    method = _method(folder)
    base = lab_of(recipe.target, lab)
    served = base.model_copy(update={"target": Target(model=recipe.target, tokens=base.target.tokens)})
    speculation = Speculation(method=method, model=str(folder.resolve()), num_speculative_tokens=k)
    arm = Arm(lab=base.name, arm=folder.name, label=folder.name, speculation=speculation)
    log = paths.root() / ".build" / "drafters" / f"{folder.name}.log"
    prompts_by_set = sets(recipe, notes)
    try:
        return asyncio.run(_measured(served, arm, log, prompts_by_set, say))
    except EngineFailure as failure:
        raise UserError(f"vLLM {failure.kind}: {failure.reason}", f"read {paths.shown(log)}") from None


def table(rows: Sequence[Accepted]) -> pd.DataFrame:
    """Return a row for each set: drafter, set, prompts, drafts, length and the positions."""
    return pd.DataFrame(
        [
            {**row.model_dump(exclude={"by_position"}),
             **{f"position_{index}": share for index, share in enumerate(row.by_position)}}
            for row in rows
        ]
    )  # fmt: skip


async def _measured(
    lab: Lab, arm: Arm, log: Path, prompts_by_set: dict[str, list[Prompt]], say: Callable[[str], None]
) -> list[Accepted]:
    sampling = Sampling(temperature=0, max_tokens=TOKENS, seed=lab.sampling.seed)
    rows = []
    async with vllm.opening(lab, arm, log).engine() as engine:
        for name, prompts in prompts_by_set.items():
            before = await engine.read()
            await _send_all(engine, prompts, sampling)
            row = accepted(arm, name, prompts, before, await engine.read(), engine.identity.source)
            say(f"{name}: {row.length:.3f} tokens a step that drafted, by position {row.by_position}")
            rows.append(row)
    return rows


async def _send_all(engine: Engine, prompts: Sequence[Prompt], sampling: Sampling) -> None:
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def send(prompt: Prompt) -> None:
        async with slots:
            answer = Answer(prompt, start_s=asyncio.get_running_loop().time())
            await engine.send(answer, sampling)
            if answer.error is not None:
                raise UserError(f"{prompt.id} failed ({answer.error})", "read the server's log")

    await asyncio.gather(*(send(prompt) for prompt in prompts))


def accepted(arm: Arm, name: str, prompts: Sequence[Prompt], before: Reading, after: Reading, source: str) -> Accepted:
    """Return the acceptance between two readings of a server's counters.

    Parameters
    ----------
    arm : Arm
        The arm that was served.
    name : str
        Name of the set.
    prompts : sequence of Prompt
        The prompts sent between the readings; nothing else was sent.
    before, after : Reading
        Counters run from the server's start; those of the first may not exist yet.
    source : str
        The badge of the engine.

    Raises
    ------
    UserError
        No draft was made.
    """
    drafts = (after.drafts or 0) - (before.drafts or 0)
    if not drafts:
        raise UserError(f"no draft was made on {name}", "read the server's log")
    earlier = before.accepted_by_position or (0.0,) * arm.k
    shares = tuple((now - then) / drafts for now, then in zip(after.accepted_by_position or (), earlier, strict=True))
    return Accepted(drafter=arm.arm, set=name, prompts=len(prompts), max_tokens=TOKENS, drafts=int(drafts),
                    length=1 + sum(shares), by_position=shares, source=source)  # fmt: skip


def _method(folder: Path) -> str:
    file = folder / "config.json"
    if not file.exists():
        raise UserError(f"no drafter in {paths.shown(folder)}", "train one: speclab drafter train")
    architectures = json.loads(file.read_text(encoding="utf-8")).get("architectures") or [""]
    return "eagle3" if "eagle3" in architectures[0].lower() else "draft_model"
