"""The training loop of both drafters: limited by steps, not by time, so that a slow machine gives the same weights."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from speclab import whole
from speclab.drafters.batches import Batch, CorpusRows
from speclab.drafters.llama import Weights
from speclab.engines.device import cpu_slug

SAVE_EVERY = 100
JUDGE_EVERY = 200
LOG = "log.csv"


def source() -> str:
    """Return the badge of what a training on this machine logs."""
    return f"measured (PyTorch {version('torch')}, {cpu_slug()})"


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long, how much at once, how fast."""

    steps: int
    batch_tokens: int
    rate: float
    slow_rate: float
    """Rate of the weights in `slow`."""
    slow: tuple[str, ...]
    warm_up: float
    betas: tuple[float, float]
    weight_decay: float
    clip: float
    seed: int

    def factor(self, step: int) -> float:
        """Return the factor of the rates: a linear warm-up, then a half cosine down to 5%."""
        rising = max(1.0, self.warm_up * self.steps)
        if step < rising:
            return (step + 1) / rising
        return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1.0, self.steps - rising)))


Loss = Callable[[Batch, int], tuple[Tensor, dict[str, float]]]
"""Takes a batch and the step's number; returns the loss, and figures to log."""
Judge = Callable[[], dict[str, float]]


def train(
    weights: Weights,
    rows: CorpusRows,
    schedule: Schedule,
    loss: Loss,
    judge: Judge,
    folder: Path,
    say: Callable[[str], None],
) -> None:
    """Train `weights` in place, continuing from the folder's checkpoint if there is one.

    Parameters
    ----------
    weights : Weights
        float32 tensors.
    rows : CorpusRows
        What to learn from.
    schedule : Schedule
        Steps and rates.
    loss : callable
        As `Loss`.
    judge : callable
        Returns figures over held-out rows; called every `JUDGE_EVERY` steps and at the end.
    folder : Path
        Of checkpoint and log.
    say : callable
        Called with a progress line now and then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for tensor in weights.values():
        tensor.requires_grad_()
    slow = [tensor for name, tensor in weights.items() if name in schedule.slow]
    others = [tensor for name, tensor in weights.items() if name not in schedule.slow]
    groups = [{"params": others, "base": schedule.rate}, {"params": slow, "base": schedule.slow_rate}]
    groups = [group for group in groups if group["params"]]
    optimiser = torch.optim.AdamW(groups, lr=schedule.rate, betas=schedule.betas, weight_decay=schedule.weight_decay,
                                  fused=True)  # fmt: skip
    first = _resumed(folder, weights, optimiser)
    began = time.monotonic()
    recent: dict[str, float] = {}
    for step, chosen in enumerate(_batches(rows, schedule, first), start=first):
        for group in optimiser.param_groups:
            group["lr"] = group["base"] * schedule.factor(step)
        value, figures = loss(rows.batch(chosen), step)
        value.backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), schedule.clip)
        optimiser.step()
        optimiser.zero_grad()
        for name, figure in {"loss": float(value.detach()), **figures}.items():
            recent[name] = 0.95 * recent.get(name, figure) + 0.05 * figure
        done = step + 1
        if done % 20 == 0:
            step_s = (time.monotonic() - began) / (done - first)
            shown = " ".join(f"{name} {figure:.3f}" for name, figure in recent.items())
            say(f"step {done} of {schedule.steps}: {shown}; {step_s:.2f} s a step, "
                f"{step_s * (schedule.steps - done) / 60:.0f} min left")  # fmt: skip
        if done % JUDGE_EVERY == 0 or done == schedule.steps:
            judged = judge()
            say(f"step {done}: " + " ".join(f"{name} {figure:.3f}" for name, figure in judged.items()))
            _log(folder / LOG, {"step": done, "loss": recent["loss"], **judged})
        if done % SAVE_EVERY == 0 or done == schedule.steps:  # after judging: a resumed run does not judge again
            _save(folder, done, weights, optimiser)


def _batches(rows: CorpusRows, schedule: Schedule, first: int) -> Iterator[list[int]]:
    step, epoch = 0, 0
    while True:
        for chosen in rows.epoch(epoch, schedule.batch_tokens, schedule.seed):
            if step >= schedule.steps:
                return
            if step >= first:
                yield chosen
            step += 1
        epoch += 1


def _save(folder: Path, step: int, weights: Weights, optimiser: Any) -> None:
    checkpoint = {"step": step, "weights": {name: tensor.detach() for name, tensor in weights.items()},
            "optimiser": optimiser.state_dict()}  # fmt: skip
    torch.save(checkpoint, folder / ".checkpoint.new")
    (folder / ".checkpoint.new").replace(folder / "checkpoint.pt")


def _resumed(folder: Path, weights: Weights, optimiser: Any) -> int:
    """Load weights and optimiser from the folder's checkpoint, and drop later rows from its log."""
    if not (folder / "checkpoint.pt").exists():
        (folder / LOG).unlink(missing_ok=True)
        return 0
    checkpoint = torch.load(folder / "checkpoint.pt", weights_only=True)
    if (folder / LOG).exists():
        head, *rows = (folder / LOG).read_text(encoding="utf-8").splitlines(keepends=True)
        earlier = [row for row in rows if int(row.split(",")[0]) <= checkpoint["step"]]
        whole.write(folder / LOG, head + "".join(earlier), "the log of a training")
    with torch.no_grad():
        for name, tensor in weights.items():
            tensor.copy_(checkpoint["weights"][name])
    optimiser.load_state_dict(checkpoint["optimiser"])
    return int(checkpoint["step"])


def _log(file: Path, row: dict[str, float]) -> None:
    fresh = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, list(row), lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerow({name: f"{value:.6g}" for name, value in row.items()})
