"""The tables of the roofline model and of the simulated fleet, as the book shows them; nothing in them is measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from speclab.cli.options import err, split
from speclab.errors import UserError
from speclab.results import strict_json

if TYPE_CHECKING:
    import pandas as pd

cli = typer.Typer(no_args_is_help=True, help=__doc__)

OPTIONS = {"k": "--gamma", "alpha": "--alpha", "drafter": "--drafter", "gpus": "--gpus", "target": "--target",
           "batch": "--batch", "below_rows": "--cut-off", "workload": "--workload",
           "speculation": "--speculation"}  # fmt: skip
"""The options behind the keys that the model's own errors name."""

Json = Annotated[bool, typer.Option("--json", help="One JSON list of flat objects.")]
Devices = Annotated[str | None, typer.Option("--device", help="Comma-separated: h100, h200, a100, b200.")]
Workloads = Annotated[str | None, typer.Option("--workload", help="Comma-separated; all five by default.")]
Presets = Annotated[
    str | None, typer.Option("--speculation", help="Comma-separated; baseline, mtp and draft-1b by default.")
]


@cli.command("table")
def device_table(
    devices: Devices = None,
    contexts: Annotated[str | None, typer.Option("--context", help="Cached tokens per row.")] = None,
    batches: Annotated[str | None, typer.Option("--batch", help="Rows of a pass.")] = None,
    target: Annotated[str, typer.Option(help="Shape of the model.")] = "llama-3-8b",
    drafter: Annotated[str, typer.Option(help="Shape of the drafter.")] = "mtp-head-8b",
    k: Annotated[int, typer.Option("--gamma", "-k", help="Draft positions.")] = 3,
    alpha: Annotated[float, typer.Option(help="Acceptance of each position.")] = 0.7,
    gpus: Annotated[int, typer.Option(help="GPUs in tensor parallel.")] = 1,
    json: Json = False,
) -> None:
    """Print what a token costs with and without speculation, by device, context and batch: roofline only, no queue.

    Without options it is the source's table, two rows of which no single GPU can hold; a batch that you give must fit.
    """
    from speclab.replications.chapter10 import table

    with _named():
        rows = table.device_table(
            _devices(devices, table.DEVICES),
            _whole_numbers(contexts, "--context", table.CONTEXTS),
            _whole_numbers(batches, "--batch", table.BATCHES),
            target=target, drafter=drafter, k=k, alpha=alpha, gpus=gpus,
            must_fit=contexts is not None or batches is not None,
        )  # fmt: skip
    shown = ["device", "context", "batch", "plain_ms_per_token", "speculative_ms_per_token", "plain_bound",
             "verify_bound", "speed_up", "fits_memory"]  # fmt: skip
    _print(rows, json, shown)


@cli.command("closed-forms")
def closed_forms(json: Json = False) -> None:
    """Print Leviathan et al.'s Table 1, and tokens per pass and theorems 3.8 and 3.11 beside the simulator."""
    from speclab.replications import chapter10

    tables = {"table1": chapter10.table1(), "draws": chapter10.draws(), "theorems": chapter10.theorems()}
    if json:
        typer.echo(
            strict_json.dumps(
                [{"form": form} | row for form, table in tables.items() for row in strict_json.rows(table)]
            )
        )
        return
    for form, table in tables.items():
        typer.echo(f"{form}\n{_text(table)}\n")


@cli.command("saturation")
def saturation(
    rates: Annotated[str | None, typer.Option("--rate", help="Requests per second, comma-separated.")] = None,
    cut_off: Annotated[
        int | None, typer.Option(help="Rows from which the third variant decodes without drafts.")
    ] = None,
    json: Json = False,
) -> None:
    """Print throughput with and without speculation as one A100 fills up."""
    from speclab.replications import chapter10
    from speclab.replications.chapter10.saturation import CUT_OFF_ROWS, RATES

    with _named():
        cut_off_rows = CUT_OFF_ROWS if cut_off is None else cut_off
        rows = chapter10.saturation(_numbers(rates, "--rate", RATES), cut_off_rows)
    _print(rows, json, list(rows.columns))


@cli.command("animation")
def animation(
    variant: Annotated[str | None, typer.Option(help="Only this one.")] = None,
    json: Json = False,
) -> None:
    """Print the recordings behind the animation: two requests on one H100, pass by pass."""
    from speclab.replications.chapter10.animation import VARIANTS
    from speclab.replications.chapter10.animation import animation as recorded

    if variant is not None and variant not in VARIANTS:
        raise UserError(f"unknown variant {variant!r}", f"there are {', '.join(VARIANTS)}", key="--variant")
    rows = recorded()
    rows = rows if variant is None else rows[rows["variant"] == variant]
    _print(rows, json, [name for name in rows.columns if name not in ("kept", "requests", "passes")])


@cli.command("sweep")
def sweep(
    devices: Devices = None,
    workloads: Workloads = None,
    presets: Presets = None,
    cut_off: Annotated[int | None, typer.Option(help="Rows from which mtp-cut-off decodes without drafts.")] = None,
    all_metrics: Annotated[bool, typer.Option("--points", help="All metrics, one row a configuration.")] = False,
    json: Json = False,
) -> None:
    """Simulate workloads by preset by device: capacity, cost, energy, latency, and the change from the baseline."""
    from speclab.replications import chapter10
    from speclab.replications.chapter10.presets import DEVICES, WORKLOADS
    from speclab.replications.chapter10.speculation_presets import CUT_OFF_ROWS, PAGE

    chosen = split(presets) or PAGE
    if cut_off is not None and "mtp-cut-off" not in chosen:
        raise UserError(f"found {cut_off}, and none of {', '.join(chosen)} has one",
                        "add mtp-cut-off to --speculation, or leave it out", key="--cut-off")  # fmt: skip
    with _named():
        run = chapter10.points if all_metrics else chapter10.sweep
        rows = run(
            _devices(devices, DEVICES), split(workloads) or list(WORKLOADS), chosen,
            cut_off_rows=CUT_OFF_ROWS if cut_off is None else cut_off,
        )  # fmt: skip
    _print(rows, json, [name for name in rows.columns if name not in ("assumed", "runs")])


@cli.command("capacity")
def capacity(
    devices: Devices = "h100",
    workloads: Workloads = None,
    presets: Presets = None,
    seeds: Annotated[int, typer.Option(min=2, help="How many seeds.")] = 8,
    json: Json = False,
) -> None:
    """Simulate goodput at capacity over several seeds: its mean, and a 95% t interval."""
    from speclab.replications import chapter10
    from speclab.replications.chapter10.presets import DEVICES, WORKLOADS
    from speclab.replications.chapter10.speculation_presets import PAGE

    with _named():
        rows = chapter10.capacity_over_seeds(
            _devices(devices, DEVICES), split(workloads) or list(WORKLOADS), split(presets) or PAGE,
            seeds=range(1, seeds + 1),
        )  # fmt: skip
    _print(rows, json, list(rows.columns))


@cli.command("charges")
def charges(device: Annotated[str, typer.Option(help="One device.")] = "h100", workloads: Workloads = None,
            json: Json = False) -> None:  # fmt: skip
    """Simulate goodput at capacity with the drafter's launches and all-reduces free, as on the page, and charged."""
    from speclab.replications import chapter10
    from speclab.replications.chapter10.presets import WORKLOADS

    with _named():
        rows = chapter10.charges(_device(device), split(workloads) or list(WORKLOADS))
    _print(rows, json, list(rows.columns))


@cli.command("gaps")
def gaps(json: Json = False) -> None:
    """Print why the 99th percentile of token gaps rises with speculation on the offline batch."""
    from speclab.replications import chapter10

    rows = chapter10.gaps()
    _print(rows, json, list(rows.columns))


@cli.command("keep")
def keep(
    everything: Annotated[bool, typer.Option("--all", help="Also the tables that are up to date.")] = False,
) -> None:
    """Make the chapter's committed tables again where its model has changed."""
    from speclab.replications.chapter10 import cached_tables

    remade = cached_tables.refresh(
        cached_tables.TABLES if everything else None, lambda name: err.print(f"  {name}", highlight=False)
    )
    err.print(f"{len(remade)} of {len(cached_tables.TABLES)} tables made", highlight=False)


def _print(table: pd.DataFrame, json: bool, shown: list[str]) -> None:
    typer.echo(strict_json.dumps(strict_json.rows(table)) if json else _text(table[shown]))


def _text(table: pd.DataFrame) -> str:
    return table.to_string(index=False, na_rep="-", float_format="%.4g")


@contextmanager
def _named() -> Iterator[None]:
    """Name the option where the model's own error names a key."""
    try:
        yield
    except UserError as error:
        raise UserError(
            error.problem, error.remedy, file=error.file, key=OPTIONS.get(error.key or "", error.key)
        ) from None


def _devices(value: str | None, default: tuple[str, ...]) -> list[str]:
    return [_device(name) for name in split(value) or default]


def _device(name: str) -> str:
    """Return the slug of a device that a person named."""
    from speclab.predict.query import SHORT_DEVICES
    from speclab.roofline.devices import DEVICES

    slug = SHORT_DEVICES.get(name, name)
    if slug not in DEVICES:
        raise UserError(f"unknown device {name!r}", f"the known devices: {', '.join(DEVICES)}", key="--device")
    return slug


def _whole_numbers(value: str | None, option: str, default: tuple[int, ...]) -> list[int]:
    return _parsed(int, value, option, default, "give whole numbers of 1 or more, comma-separated")


def _numbers(value: str | None, option: str, default: tuple[float, ...]) -> list[float]:
    return _parsed(float, value, option, default, "give numbers above 0, comma-separated")


def _parsed(
    parse: Callable[[str], Any], value: str | None, option: str, default: tuple[Any, ...], remedy: str
) -> list[Any]:
    if value is None:
        return list(default)
    try:
        numbers = [parse(part) for part in split(value) or ()]
    except ValueError:
        numbers = []
    if not numbers or not all(0 < number < math.inf for number in numbers):
        raise UserError(f"found {value!r}", remedy, key=option)
    return numbers
