"""Figures of the calibrated model: what it predicts beside what was measured."""

from speclab.replications.validation.figures.calibration import (
    cost_of_tokens,
    predicted_beside_measured,
    replica_speed_up,
)
from speclab.replications.validation.figures.survey import speed_up_by_device

__all__ = ["cost_of_tokens", "predicted_beside_measured", "replica_speed_up", "speed_up_by_device"]
