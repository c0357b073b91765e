"""The calibrated model from a probe: what the device's passes reach, and what a server is taken to add to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from speclab.errors import UserError
from speclab.predict.fit import Fit, Measured, Place, fit
from speclab.predict.parameters import CPU_135M, H100_8B, MEANINGS, Parameters
from speclab.predict.step_time import Draft, step
from speclab.predict.traffic import Traffic
from speclab.probe.plan import cut
from speclab.probe.record import ProbeRecord, Timed
from speclab.roofline.forward_pass import work
from speclab.roofline.transformers import Transformer

FREE = ("overhead_s", "byte_per_s", "flop_per_s")
SPREAD_OF_EIGHTY = 2.56
"""Standard deviations between the 10% and the 90% point of a normal distribution."""
LEAST_SPREAD = 0.02
"""Relative spread of a point below which its weight does not grow: the model itself is no better."""

HOSTS = {"cpu": CPU_135M, "cuda": H100_8B}
"""What a server adds to its passes, by kind of device: assumed, and as uncertain as its plausible range."""


def of_passes(record: ProbeRecord) -> Fit:
    """Return overhead, bandwidth and arithmetic rate of a probe's passes by themselves, without a server.

    Parameters
    ----------
    record : ProbeRecord
        What was timed; it is priced with the layers that ran. Bytes are the roofline model's, two a value.

    Raises
    ------
    UserError
        The points do not tell the three apart, as where no pass was long enough for arithmetic to bind it.
    """
    shape = cut(record.model, record.layers)
    steps, heads = ([each for each in record.measured if each.part == part] for part in ("step", "head"))
    asked = [work(shape, float(at.tokens), at.attended, float(at.kv_tokens)) for at in (each.point for each in steps)]
    start = HOSTS[record.kind].replaced(
        overhead_s=0.1 * min(each.median_s for each in steps),
        byte_per_s=max(each.bytes / at.median_s for each, at in zip(asked, steps, strict=True)),
        flop_per_s=max(each.flops / at.median_s for each, at in zip(asked, steps, strict=True)),
    )
    figures = [_step(shape, each) for each in steps] + [_head(shape, each) for each in heads]
    exact = [name for name in MEANINGS if name not in (*FREE, "smoothing")]
    said = f"{len(steps)} steps of {record.model.name}, {record.source}"
    try:
        found = fit(figures, start, FREE, said, exact)
    except UserError as error:
        raise UserError(f"this probe cannot calibrate: {error.problem}", "time more points: --seconds") from None
    return replace(found, places=tuple(Place(each.rows, each.tokens, each.context) for each in steps))


def for_server(record: ProbeRecord) -> Fit:
    """Return a calibration for a server on the probed device: the probe's passes under an assumed host.

    The host's overhead is added to that of the passes, and its uncertainty with it; what a row, a token and a draft
    position cost the host is held. None of that was measured by the probe. The passes' own overhead goes up with the
    layers that were cut.

    Raises
    ------
    UserError
        As for `of_passes`.
    """
    passes, host = of_passes(record), HOSTS[record.kind]
    own_s = passes.parameters.overhead_s * record.model.layers / record.layers
    parameters = host.replaced(
        **{name: getattr(passes.parameters, name) for name in FREE[1:]}, overhead_s=own_s + host.overhead_s
    )
    held = tuple(name for name in MEANINGS if name not in FREE and getattr(parameters, name) > 0)
    said = f"{passes.fitted_on}; the server's own part is assumed, no prediction from a probe was held against one"
    covariance = _widened(passes, held, own_s / parameters.overhead_s, parameters)
    return replace(passes, parameters=parameters, held=held, covariance=covariance, fitted_on=said)


def mean_and_worst(passes: Fit) -> tuple[float, float, str]:
    """Return a fit's mean absolute error and its worst one, relative to the measured times, and where that is."""
    worst = max(passes.residuals, key=lambda label: abs(passes.residuals[label]))
    return float(np.mean(np.abs(list(passes.residuals.values())))), passes.residuals[worst], worst


def _step(shape: Transformer, each: Timed) -> Measured:
    traffic, draft = Traffic(each.context), Draft(each.positions - 1)

    def seconds(parameters: Parameters) -> float:
        return float(step(parameters, shape, each.rows, traffic, draft).verify_s) + parameters.overhead_s

    return _figure(f"{each.rows} rows x {each.positions}, context {each.context}", each, seconds)


def _head(shape: Transformer, each: Timed) -> Measured:
    """Return an LM head's time as a figure: one matrix, so it tells bandwidth from launches."""
    alone = replace(shape, layers=0, fused_states=0)

    def seconds(parameters: Parameters) -> float:
        return float(step(parameters, alone, each.tokens, Traffic(0.0)).verify_s)

    return _figure(f"LM head at {each.tokens} tokens", each, seconds)


def _figure(label: str, each: Timed, model: Callable[[Parameters], float]) -> Measured:
    spread = max(LEAST_SPREAD, (each.high_s - each.low_s) / SPREAD_OF_EIGHTY / each.median_s)
    return Measured(label, each.median_s, model, Place(each.rows, each.tokens, each.context), spread)


def _widened(passes: Fit, held: tuple[str, ...], share: float, parameters: Parameters) -> NDArray[np.float64]:
    """Return the covariance with the host's part: `share` of the whole overhead is the passes' own."""
    fitted, names = len(FREE), passes.free + passes.held
    covariance = np.zeros((fitted + len(held),) * 2)
    for at, name in enumerate((*FREE, *held)):
        for beside, other in enumerate((*FREE, *held)):
            if name in names and other in names:
                covariance[at, beside] = passes.covariance[names.index(name), names.index(other)]
        if name not in names:
            covariance[at, at] = MEANINGS[name].spread(getattr(parameters, name)) ** 2
    covariance[0] *= share
    covariance[:, 0] *= share
    covariance[0, 0] += ((1 - share) * MEANINGS[FREE[0]].spread(parameters.overhead_s)) ** 2
    return covariance
