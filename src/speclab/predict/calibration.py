"""A calibration: fitted parameters, and the device and model that they belong to."""

from __future__ import annotations

from dataclasses import dataclass, field

from speclab.predict.fit import Fit
from speclab.predict.step_time import ALL, ModelOptions
from speclab.roofline.devices import Device
from speclab.roofline.transformers import Transformer


@dataclass(frozen=True, slots=True)
class Calibration:
    """Fitted parameters with what they belong to.

    Attributes
    ----------
    name : str
    fit : Fit
    device : Device, optional
        The data sheet; None for a machine without an entry.
    target : Transformer
    options : ModelOptions
    launches : dict of str to float
        Launch part of a draft position by method, s, where it was measured.
    """

    name: str
    fit: Fit
    device: Device | None
    target: Transformer
    options: ModelOptions = ALL
    launches: dict[str, float] = field(default_factory=dict)
