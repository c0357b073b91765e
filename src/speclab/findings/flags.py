"""Whether two arms were run alike."""

from __future__ import annotations

from typing import Any

from speclab.record.schema import Asked

MAY_DIFFER = {"arm", "speculation", "simulated_drafter"}
"""What makes an arm an arm."""


def differences(arm: Asked, baseline: Asked) -> dict[str, tuple[Any, Any]]:
    """Return what else than speculation differs between a cell and its baseline; empty where they may be compared.

    A flag that only one of them has makes a speed-up of its own: vllm-project/vllm#24799 has asynchronous scheduling on
    in one arm only.

    Parameters
    ----------
    arm, baseline : Asked
        Two cells of the same workload and concurrency.

    Returns
    -------
    dict of str to (object, object)
        Dotted key (``server.max-num-seqs``) to the arm's and the baseline's value; None where one has no such flag.
    """
    ours, theirs = (_flat(asked.model_dump(exclude=MAY_DIFFER)) for asked in (arm, baseline))
    keys = dict.fromkeys([*ours, *theirs])
    return {key: (ours.get(key), theirs.get(key)) for key in keys if ours.get(key) != theirs.get(key)}


def _flat(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in content.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
