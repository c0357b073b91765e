"""The calibrated model from a probe: the rates of the device's passes, and what a server is assumed to add to them."""

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
"""Smallest relative spread that a point is weighted by: the model itself is no better."""

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
        The points do not separate the three, for instance because no pass was long enough to be bound by arithmetic.
    """
    shape = cut(record.model, record.layers)
    steps, heads = ([timed for timed in record.measured if timed.part == part] for part in ("step", "head"))
    works = [
        work(shape, float(point.tokens), point.attended, float(point.kv_tokens))
        for point in (timed.point for timed in steps)
    ]
    start = HOSTS[record.kind].replaced(
        overhead_s=0.1 * min(timed.median_s for timed in steps),
        byte_per_s=max(pass_work.bytes / timed.median_s for pass_work, timed in zip(works, steps, strict=True)),
        flop_per_s=max(pass_work.flops / timed.median_s for pass_work, timed in zip(works, steps, strict=True)),
    )
    figures = [_step(shape, timed) for timed in steps] + [_head(shape, timed) for timed in heads]
    exact = [name for name in MEANINGS if name not in (*FREE, "smoothing")]
    fitted_on = f"{len(steps)} steps of {record.model.name}, {record.source}"
    try:
        passes = fit(figures, start, FREE, fitted_on, exact)
    except UserError as error:
        raise UserError(f"this probe cannot calibrate: {error.problem}", "time more points: --seconds") from None
    return replace(passes, places=tuple(Place(timed.rows, timed.tokens, timed.context) for timed in steps))


def for_server(record: ProbeRecord) -> Fit:
    """Return a calibration for a server on the probed device: the probe's passes under an assumed host.

    The host's overhead is added to that of the passes, and its uncertainty with it; what a row, a token and a draft
    position cost the host is held. None of that was measured by the probe. The passes' own overhead is scaled up by
    the layers that were cut.

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
    fitted_on = (
        f"{passes.fitted_on}; the server's own part is assumed, no prediction from a probe was checked against one"
    )
    covariance = _widened(passes, held, own_s / parameters.overhead_s, parameters)
    return replace(passes, parameters=parameters, held=held, covariance=covariance, fitted_on=fitted_on)


def mean_and_worst(passes: Fit) -> tuple[float, float, str]:
    """Return a fit's mean absolute error and its worst one, relative to the measured times, and where that is."""
    worst = max(passes.residuals, key=lambda label: abs(passes.residuals[label]))
    return float(np.mean(np.abs(list(passes.residuals.values())))), passes.residuals[worst], worst


def _step(shape: Transformer, timed: Timed) -> Measured:
    traffic, draft = Traffic(timed.context), Draft(timed.positions - 1)

    def seconds(parameters: Parameters) -> float:
        return float(step(parameters, shape, timed.rows, traffic, draft).verify_s) + parameters.overhead_s

    return _figure(f"{timed.rows} rows x {timed.positions}, context {timed.context}", timed, seconds)


def _head(shape: Transformer, timed: Timed) -> Measured:
    """Return an LM head's time as a figure: one matrix, so it separates bandwidth from launches."""
    alone = replace(shape, layers=0, fused_states=0)

    def seconds(parameters: Parameters) -> float:
        return float(step(parameters, alone, timed.tokens, Traffic(0.0)).verify_s)

    return _figure(f"LM head at {timed.tokens} tokens", timed, seconds)


def _figure(label: str, timed: Timed, model: Callable[[Parameters], float]) -> Measured:
    spread = max(LEAST_SPREAD, (timed.high_s - timed.low_s) / SPREAD_OF_EIGHTY / timed.median_s)
    return Measured(label, timed.median_s, model, Place(timed.rows, timed.tokens, timed.context), spread)


def _widened(passes: Fit, held: tuple[str, ...], share: float, parameters: Parameters) -> NDArray[np.float64]:
    """Return the covariance with the host's part: `share` of the whole overhead is the passes' own."""
    fitted, names = len(FREE), passes.free + passes.held
    covariance = np.zeros((fitted + len(held),) * 2)
    for row, name in enumerate((*FREE, *held)):
        for column, other in enumerate((*FREE, *held)):
            if name in names and other in names:
                covariance[row, column] = passes.covariance[names.index(name), names.index(other)]
        if name not in names:
            covariance[row, row] = MEANINGS[name].spread(getattr(parameters, name)) ** 2
    covariance[0] *= share
    covariance[:, 0] *= share
    covariance[0, 0] += ((1 - share) * MEANINGS[FREE[0]].spread(parameters.overhead_s)) ** 2
    return covariance
