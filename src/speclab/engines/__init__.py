"""What serves tokens: real vLLM, any server that is up, or a simulator in virtual time; one seam for all."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from speclab.engines import address
from speclab.engines.base import Opening, Starting
from speclab.errors import UserError
from speclab.lab import Arm, EngineName, Lab, WorkloadName


def _base_url_from_environment() -> str | None:
    return os.environ.get("SPECLAB_BASE_URL")


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What an engine has to be told that no lab holds.

    Attributes
    ----------
    base_url : str, optional
        Address of a server that is up (engine ``endpoint``); ``$SPECLAB_BASE_URL`` where not given.
    device : str, optional
        Slug of the device that serves, for the records' path; found out by the engine where it can be.
    """

    base_url: str | None = field(default_factory=_base_url_from_environment)
    device: str | None = None

    def endpoint_of(self, engine: EngineName) -> str | None:
        """Return the server's address as a record names it; None where this project starts what serves.

        Raises
        ------
        UserError
            `base_url` is no address.
        """
        return address.identity(self.base_url) if engine == "endpoint" and self.base_url is not None else None

    def device_of(self, engine: EngineName, lab: Lab) -> str:
        """Return the slug of the device that an engine runs on."""
        if self.device is not None:
            return self.device
        if engine == "simulated":
            return lab.simulated.device if lab.simulated else "unknown"
        if engine == "vllm":
            from speclab.engines import vllm

            return vllm.device()
        return "unknown"


def choose(
    engine: EngineName,
    lab: Lab,
    arm: Arm,
    workload: WorkloadName,
    repeat: int,
    options: EngineOptions,
    log_file: Path,
    starting: Starting | None = None,
) -> Opening:
    """Return how to serve one arm.

    Parameters
    ----------
    engine : {'simulated', 'endpoint', 'vllm'}
        What serves. Each is imported only when it is chosen.
    lab, arm
        What to serve.
    workload, repeat : str, int
        The cell to come; only the simulator, which reads no text and draws by chance, has to know.
    options : EngineOptions
        Where the endpoint is.
    log_file : Path
        Where a started server keeps its log.
    starting : Starting, optional
        Told how far a server's start is.

    Raises
    ------
    UserError
        The lab or the options lack what this engine needs.
    """
    if engine == "simulated":
        from speclab.engines import simulated

        return simulated.opening(lab, arm, workload, seed_key=str(repeat))
    if engine == "vllm":
        from speclab.engines import vllm

        return vllm.opening(lab, arm, log_file, device=options.device, starting=starting)
    if options.base_url is None:
        raise UserError(
            "the engine 'endpoint' has no address", "give --base-url, or set SPECLAB_BASE_URL", key="engine"
        )
    from speclab.engines import endpoint

    return endpoint.opening(lab, arm, options.base_url, options.device_of(engine, lab))
