"""What the map computes with in the page: parameters and their draws, shapes, data sheets, errors, as data for scripts.

The scripts repeat `speclab.predict` term by term, so everything that they need is here, and no results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from speclab.predict.calibration import Calibration
from speclab.predict.errors import CROSSOVER, SPEED_UP
from speclab.predict.prediction import DRAWS, INTERVAL, MOST_IN_FLIGHT, normals
from speclab.predict.query import CONTEXT, DRAFTERS, GRID, METHODS, SHORT_DEVICES, Method
from speclab.predict.step_time import ALL
from speclab.replications import calibrations
from speclab.replications.ask import NamedQuery, names_of
from speclab.replications.validation.predictions import LLAMA
from speclab.roofline.devices import device
from speclab.roofline.memory import USABLE_MEMORY
from speclab.roofline.transformers import transformer

DEVICES = ("h100", "a100", "h200", "b200")
MODELS = {"llama-3.1-8b": "llama-3-8b", "llama-3.1-70b": "llama-3-70b"}
"""What the map asks about, by the names of ``speclab predict``; for the models, with their shapes."""

MODEL_NAMES = {"llama-3.1-8b": "Llama 3.1 8B", "llama-3.1-70b": "Llama 3.1 70B"}
METHOD_NAMES: dict[Method, str] = {"eagle3": "an EAGLE-3 head", "draft-model": "a draft model (1B)", "ngram": "n-gram"}
CALIBRATIONS = {
    "lab09": "Lab 9's baseline",
    "gsm8k": "published speed-ups, GSM8K",
    "sharegpt": "published speed-ups, ShareGPT",
}
"""The calibrations with a data sheet, which can be transferred to another device."""


def map_data(first: NamedQuery, draws: int = DRAWS) -> dict[str, Any]:
    """Return everything that the widget ``map`` computes with.

    Parameters
    ----------
    first : NamedQuery
        The question that the page opens with; its concurrency is the reader's own.
    draws : int
        Parameter sets that the intervals are taken from.

    Raises
    ------
    ValueError
        A calibration leaves something out or adds something that the scripts do not know.
    UserError
        What a calibration is made from is missing.
    """
    shapes = set(MODELS.values())
    drafters = {
        method: {target: slug for (of, target), slug in DRAFTERS.items() if of == method and target in shapes}
        for method in METHODS
    }
    shapes |= {slug for by_target in drafters.values() for slug in by_target.values()}
    return {
        "devices": [_device(key) for key in DEVICES],
        "models": [{"key": key, "name": MODEL_NAMES[key], "shape": shape} for key, shape in MODELS.items()],
        "methods": [{"key": key, "name": name} for key, name in METHOD_NAMES.items()],
        "calibrations": [_calibration(key, name, draws) for key, name in CALIBRATIONS.items()],
        "shapes": {slug: _shape(slug) for slug in sorted(shapes)},
        "drafters": drafters,
        "grid": list(GRID),
        "interval": list(INTERVAL),
        "most_in_flight": MOST_IN_FLIGHT,
        "usable_memory": USABLE_MEMORY,
        "discrepancy": calibrations.discrepancy(),
        "normals": normals(draws).tolist(),
        "context": CONTEXT,
        "errors": {method: _errors(names_of(method)) for method in METHODS},
        "calibration": NamedQuery.calibration,
        "first": asdict(first) | _chosen(first),
    }


def _chosen(first: NamedQuery) -> dict[str, Any]:
    """Return what the form shows where the first question leaves it to the calibration."""
    in_a_loop = first.prompt is not None
    return {
        "device": first.device or DEVICES[0],
        "model": first.model or next(iter(MODELS)),
        "context": first.context if first.context is not None or in_a_loop else CONTEXT,
    }


def device_names() -> dict[str, str]:
    """Return the devices of the map with their names for the reader."""
    return {key: device(SHORT_DEVICES.get(key, key)).name for key in DEVICES}


def _device(key: str) -> dict[str, Any]:
    sheet = device(SHORT_DEVICES.get(key, key))
    return {
        "key": key,
        "name": sheet.name,
        "byte_per_s": sheet.peak_byte_per_s,
        "flop_per_s": sheet.peak_flop_per_s,
        "memory_bytes": sheet.memory_bytes * sheet.gpus,
        "idle_w": sheet.idle_w,
        "pj_per_flop": sheet.pj_per_flop,
        "pj_per_byte": sheet.pj_per_byte,
        "usd_per_hour": sheet.usd_per_hour,
    }


def _shape(slug: str) -> dict[str, Any]:
    shape = transformer(slug)
    return {
        "name": shape.name,
        "layers": shape.layers,
        "width": shape.width,
        "parameters": shape.matmul_parameters,
        "kv_bytes": shape.kv_bytes_per_token,
        "resident_bytes": shape.resident_bytes,
        "vocabulary": shape.vocabulary,
        "sampled": shape.output_vocabulary or shape.vocabulary,
    }


def _calibration(key: str, name: str, draws: int) -> dict[str, Any]:
    calibration: Calibration = calibrations.named(key)
    if calibration.options != ALL or calibration.device is None:
        raise ValueError(f"{key}: the scripts know no other options than the default, and need a data sheet")
    fit = calibration.fit
    drawn = fit.free + fit.held
    context = [place.context for place in fit.places]
    return {
        "key": key,
        "name": key,
        "label": name,
        "fitted_on": fit.fitted_on,
        "device": calibration.device.name,
        "target": calibration.target.slug,
        "rates": {"byte_per_s": calibration.device.peak_byte_per_s, "flop_per_s": calibration.device.peak_flop_per_s},
        "parameters": fit.parameters.model_dump(),
        "drawn": drawn,
        "draws": [
            [getattr(drawn_parameters, parameter) for parameter in drawn] for drawn_parameters in fit.draws(draws)
        ],
        "places": {
            "rows": max(place.rows for place in fit.places),
            "tokens": max(place.tokens for place in fit.places),
            "context": [min(context), max(context)],
        },
        "launches": calibration.launches,
    }


def _errors(names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        row.row()
        for row in calibrations.validate()
        if row.method in names and row.figure in (SPEED_UP, CROSSOVER) and row.model == LLAMA
    ]
