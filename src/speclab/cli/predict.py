"""The commands that ask the calibrated model: ``speclab predict`` and ``speclab validate``."""

from __future__ import annotations

from typing import Annotated

import pandas as pd
import typer
from rich.console import Console
from rich.table import Table

from speclab.errors import UserError
from speclab.predict.answer import Answered
from speclab.predict.errors import Errors
from speclab.predict.query import CONTEXT, Method
from speclab.replications import ask, calibrations
from speclab.replications.ask import NamedQuery
from speclab.results import strict_json

TEXT = "–"


def predict(
    acceptance: Annotated[
        str, typer.Option(help="Marginal acceptance by draft position, comma-separated: .63,.38,.25")
    ],
    k: Annotated[int, typer.Option(help="Draft positions.")] = 3,
    device: Annotated[str | None, typer.Option(help="h100, a100, h200, b200; the calibration's by default.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Shape that is served, e.g. llama-3.1-8b; the calibration's by default.")
    ] = None,
    method: Annotated[Method, typer.Option(help="What drafts.")] = "eagle3",
    drafter: Annotated[
        str | None, typer.Option(help="Shape that drafts; the method's own by default. Not with n-gram.")
    ] = None,
    drafting_ms: Annotated[
        float | None,
        typer.Option(
            help="What a draft position adds at one in flight, ms; the calibration's by default. Not with n-gram."
        ),
    ] = None,
    draft_rate: Annotated[float, typer.Option(help="Share of steps that have a draft.")] = 1.0,
    context: Annotated[
        float | None,
        typer.Option(help=f"Tokens that a request has cached, mean over its steps; {CONTEXT:g} by default."),
    ] = None,
    prompt: Annotated[
        float | None, typer.Option(help="Mean prompt, tokens; with --answer in place of --context.")
    ] = None,
    answer: Annotated[float | None, typer.Option(help="Mean answer, tokens.")] = None,
    concurrency: Annotated[str | None, typer.Option(help="Requests in flight, comma-separated.")] = None,
    calibration: Annotated[
        str, typer.Option(help="lab09, gsm8k, sharegpt, cpu-smollm2, or a probe's record (.json).")
    ] = NamedQuery.calibration,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Predict where speculation stops paying, from an acceptance curve and what a draft position costs."""
    query = NamedQuery(
        device=device, model=model, k=k, acceptance=_numbers(acceptance, "--acceptance"), method=method,
        drafter=drafter, drafting_ms=drafting_ms, draft_rate=draft_rate, context=context, prompt=prompt, answer=answer,
        concurrency=None if concurrency is None else _whole(concurrency), calibration=calibration,
    )  # fmt: skip
    try:
        answered = ask.answer(query)
    except UserError as error:
        key = error.key if error.key is None or error.key.startswith("--") else f"--{error.key}"
        raise UserError(error.problem, error.remedy, file=error.file, key=key) from None
    if json:
        typer.echo(strict_json.dumps(answered.as_json()))
        return
    _show(answered)


def validate(json: Annotated[bool, typer.Option("--json", help="One JSON list of flat objects.")] = False) -> None:
    """Show how wrong the model has been, by source and method: predictions only, nothing that a fit saw."""
    errors = calibrations.validate()
    if json:
        typer.echo(strict_json.dumps([error.row() for error in errors]))
        return
    typer.echo(_errors(errors).to_string(index=False))


def _errors(errors: list[Errors]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "source": error.source,
            "method": error.method,
            "k": TEXT if error.k is None else error.k,
            "dataset": error.dataset,
            "figure": error.figure,
            "n": error.n,
            "mean error": f"{error.mean_abs_error:.1%}",
            "worst": f"{error.worst_error:+.1%}",
            "where": error.worst_cell,
        }
        for error in errors
    )


def _show(answered: Answered) -> None:
    console = Console(highlight=False, soft_wrap=True)
    prediction = answered.prediction
    table = Table(
        "in flight", "speed-up", "90% of draws", "break-even tokens", "best k", "$ / M tok", "J / M tok", box=None
    )
    costs = {cost["concurrency"]: cost for cost in answered.costs}
    for index, at in enumerate(prediction.concurrency):
        cost = costs.get(at, {})
        usd, joules = cost.get("usd_per_mtok"), cost.get("j_per_mtok")
        draws = f"{prediction.low[index]:.2f} to {prediction.high[index]:.2f}"
        table.add_row(
            f"{at:g}", f"{prediction.speed_up[index]:.2f}", draws,
            f"{prediction.break_even_length[index]:.2f}", str(prediction.best_k[index]),
            TEXT if usd is None else f"{usd:.3f}", TEXT if joules is None else f"{joules:,.0f}",
        )  # fmt: skip
    console.print(table)
    console.print(f"\n{_verdict(answered)}")
    console.print(f"calibration {answered.calibration}")
    for error in answered.errors:
        console.print(
            f"error so far: {error.figure} of {error.method} on {error.dataset} ({error.source}, n = {error.n}): "
            f"mean {error.mean_abs_error:.1%}, worst {error.worst_error:+.1%}"
        )
    for warning in prediction.warnings:
        console.print(f"warning: {warning}", style="yellow")


def _verdict(answered: Answered) -> str:
    crossover = answered.prediction.crossover
    if crossover.status == "always below":
        return "speculation loses at every number of requests in flight"
    low = "1 or fewer" if crossover.low is None else f"{crossover.low:.0f}"
    high = "more than is asked for" if crossover.high is None else f"{crossover.high:.0f}"
    if crossover.value is None:
        return f"speculation pays at every number of requests in flight (nine of ten draws: from {low} to {high})"
    return f"speculation pays up to {crossover.value:.0f} in flight; nine of ten draws: {low} to {high}"


def _numbers(value: str, key: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in value.split(","))
    except ValueError:
        raise UserError(f"found {value!r}", "give numbers, comma-separated: .63,.38,.25", key=key) from None


def _whole(value: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError:
        raise UserError(f"found {value!r}", "give whole numbers, comma-separated", key="--concurrency") from None
