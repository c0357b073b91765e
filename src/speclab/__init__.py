"""When speculative decoding pays and when it stops paying: labs, engines, records, findings and a cost model.

The public interface is what this module hands on; everything below may move between versions.

Examples
--------
>>> from speclab import predict_speed_up, read_results, run_arm
>>> run = run_arm("lab09", "eagle3-k3", concurrencies=[1], out="/tmp/trial")  # doctest: +SKIP
>>> read_results("lab09").value("crossover", arm="eagle3-k3", workload="chat")  # doctest: +SKIP
>>> predict_speed_up((0.63, 0.38, 0.25), device="h100").prediction.crossover  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

from speclab.errors import UserError

if TYPE_CHECKING:
    from speclab.replications.ask import predict_speed_up
    from speclab.results.lab import of as read_results
    from speclab.run.arms import run_arm

__version__ = version("speclab")
__all__ = ["UserError", "__version__", "predict_speed_up", "read_results", "run_arm"]

_FROM = {
    "predict_speed_up": ("speclab.replications.ask", "predict_speed_up"),
    "read_results": ("speclab.results.lab", "of"),
    "run_arm": ("speclab.run.arms", "run_arm"),
}


def __getattr__(name: str) -> object:
    """Import a public function when it is first asked for: importing the package alone loads no pandas."""
    if name not in _FROM:
        raise AttributeError(f"module 'speclab' has no attribute {name!r}")
    module, function = _FROM[name]
    return getattr(import_module(module), function)
