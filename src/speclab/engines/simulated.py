"""The simulated engine: an arm of a lab served by the roofline model, in virtual time, with assumed acceptance.

What a drafter costs and how often the target agrees comes from the ``simulated`` keys of the lab's files; nothing is
measured.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from speclab import paths, prompts
from speclab.engines import vllm_flags
from speclab.engines.base import Engine, EngineFailure, EngineIdentity, Opening
from speclab.engines.simulated_answers import Writer
from speclab.engines.simulated_server import Limits, SimulatedServer
from speclab.engines.virtual_time import VirtualTimeLoop
from speclab.errors import UserError
from speclab.lab import Arm, Lab, SimulatedDrafter, SimulatedTarget, WorkloadName
from speclab.roofline.devices import device
from speclab.roofline.memory import USABLE_MEMORY, kv_capacity_tokens
from speclab.roofline.step import StepModel
from speclab.roofline.transformers import transformer

FoundT = TypeVar("FoundT")

DEFAULT_MAX_NUM_SEQS = 256
DEFAULT_MAX_NUM_BATCHED_TOKENS = 8192
"""What a lab that does not name these flags gets here; vLLM's own defaults change with version and device."""


def opening(lab: Lab, arm: Arm, workload: WorkloadName, seed_key: str = "") -> Opening:
    """Return how to serve one arm's cell of one workload in virtual time.

    Parameters
    ----------
    lab, arm : Lab, Arm
        What to serve; their ``simulated`` keys say what machine, target and drafter are taken to be.
    workload : {'chat', 'completion', 'revision'}
        Decides answer lengths, acceptance and draft rate.
    seed_key : str
        Joins the lab's seed in the draws of acceptance (a repeat's number), not of answer lengths.

    Returns
    -------
    Opening
        Entering its engine raises `EngineFailure` where a real server would not start: ``bad configuration`` where a
        draft model's vocabulary is not the target's, ``out of memory`` where weights and the KV cache of the highest
        concurrency, every row at full length, do not fit.

    Raises
    ------
    UserError
        A file of the lab lacks an assumption that the simulation needs, or names an unknown device or shape.
    """
    target = _assumed_target(lab, workload)
    drafter = _assumed_drafter(lab, arm, workload)
    limits, usable = _limits(lab, arm), _usable_memory(lab, arm)
    model = _step_model(lab, arm, target, drafter)
    writer = partial(Writer, target.answers[workload], lab.sampling.seed, arm.arm, workload, seed_key)
    if drafter is not None:
        curve, draft_rate = drafter.acceptance[workload], drafter.draft_rate.get(workload, 1.0)
        writer = partial(writer, marginal=curve, draft_rate=draft_rate)
    token_counts = prompts.token_counts(lab.target.tokens, workload)

    @asynccontextmanager
    async def engine() -> AsyncIterator[Engine]:
        _check_vocabulary(model, arm)
        _check_memory(model, lab, limits, usable, max(token_counts.values()))
        identity = EngineIdentity(engine="simulated", version=version("speclab"), device=model.device.slug)
        server = SimulatedServer(identity, model, writer(), token_counts, limits)
        try:
            yield server
        finally:
            server.close()

    return Opening(VirtualTimeLoop, engine)


def _assumed_target(lab: Lab, workload: WorkloadName) -> SimulatedTarget:
    file = paths.labs() / lab.name / "lab.yml"
    if lab.simulated is None:
        raise UserError(
            "nothing to simulate with", "add device, shape and answers, or choose another engine",
            file=file, key="simulated",
        )  # fmt: skip
    if workload not in lab.simulated.answers:
        raise UserError(
            "missing", "add mean_tokens and cv of the answers", file=file, key=f"simulated.answers.{workload}"
        )
    return lab.simulated


def _assumed_drafter(lab: Lab, arm: Arm, workload: WorkloadName) -> SimulatedDrafter | None:
    if arm.speculation is None:
        return None
    file = _arm_file(arm)
    assumed = arm.simulated
    if arm.has_schedule:
        raise UserError(
            "a schedule, and a simulated request's drafts are drawn when it starts",
            "choose another engine, or an arm for each k", file=file, key="num_speculative_tokens_per_batch_size",
        )  # fmt: skip
    if assumed is None:
        raise UserError(
            "nothing to simulate the drafter with", "add acceptance and cost, or choose another engine",
            file=file, key="simulated",
        )  # fmt: skip
    if assumed.shape is None and arm.speculation.method != "ngram":
        raise UserError("missing", f"a {arm.speculation.method} drafter is a network; name its shape",
                        file=file, key="simulated.shape")  # fmt: skip
    found = len(assumed.acceptance.get(workload, ()))
    if found != arm.k:
        raise UserError(
            f"{found} draft positions" if found else "missing",
            f"give one value for each of the {arm.k} draft positions",
            file=file, key=f"simulated.acceptance.{workload}",
        )  # fmt: skip
    return assumed


def _step_model(lab: Lab, arm: Arm, target: SimulatedTarget, drafter: SimulatedDrafter | None) -> StepModel:
    lab_file, arm_file = paths.labs() / lab.name / "lab.yml", _arm_file(arm)
    machine = _known(device, target.device, lab_file, "simulated.device")
    verifier = _known(transformer, target.shape, lab_file, "simulated.shape")
    if drafter is None:
        return StepModel(machine, verifier)
    return StepModel(
        machine,
        verifier,
        _known(transformer, drafter.shape, arm_file, "simulated.shape") if drafter.shape else None,
        k=arm.k,
        floor_s=drafter.floor_ms_per_position * 1e-3,
        host_s=drafter.host_ms_per_step * 1e-3,
    )


def _known(find: Callable[[str], FoundT], slug: str, file: Path, key: str) -> FoundT:
    """Look a slug up, and say where it is written if it is not known."""
    try:
        return find(slug)
    except UserError as error:
        raise UserError(error.problem, error.remedy, file=file, key=key) from None


def _limits(lab: Lab, arm: Arm) -> Limits:
    flags = vllm_flags.of(lab, arm)

    def number(flag: str) -> int | None:
        value = flags.get(flag)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise UserError(f"found {value!r}", "give a whole number above 0",
                            file=_flag_file(lab, arm, flag), key=f"server.{flag}")  # fmt: skip
        return value

    limits = Limits(
        number("max-num-seqs") or DEFAULT_MAX_NUM_SEQS,
        number("max-num-batched-tokens") or DEFAULT_MAX_NUM_BATCHED_TOKENS,
        number("max-model-len"),
    )
    positions = _most_rows(lab, limits) * (arm.k + 1)
    if positions > limits.max_num_batched_tokens:
        # vLLM would leave out some drafts or rows; this engine always serves all of them
        raise UserError(
            f"found {limits.max_num_batched_tokens}",
            f"{_most_rows(lab, limits)} rows with {arm.k} drafts each are {positions} positions; give at least that",
            file=_flag_file(lab, arm, "max-num-batched-tokens"),
            key="server.max-num-batched-tokens",
        )
    return limits


def _check_vocabulary(model: StepModel, arm: Arm) -> None:
    if arm.speculation is None or arm.speculation.method != "draft_model" or model.drafter is None:
        return
    target, drafter = model.target, model.drafter
    if target.vocabulary != drafter.vocabulary:
        raise EngineFailure(
            "bad configuration",
            f"a draft model needs the target's vocabulary: {target.name} has {target.vocabulary:,} tokens, "
            f"{drafter.name} has {drafter.vocabulary:,}",
        )


def _usable_memory(lab: Lab, arm: Arm) -> float:
    flag = "gpu-memory-utilization"
    share = vllm_flags.of(lab, arm).get(flag, USABLE_MEMORY)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise UserError(f"found {share!r}", "give a share above 0, at most 1",
                        file=_flag_file(lab, arm, flag), key=f"server.{flag}")  # fmt: skip
    return share


def _check_memory(model: StepModel, lab: Lab, limits: Limits, usable: float, longest_prompt: int) -> None:
    room = kv_capacity_tokens(model.device, model.target, model.drafter, usable)
    row = longest_prompt + lab.sampling.max_tokens
    if limits.max_model_len is not None:
        row = min(row, limits.max_model_len)
    rows = _most_rows(lab, limits)
    if rows * row > room:
        raise EngineFailure(
            "out of memory",
            f"{rows} rows of up to {row:,} tokens need a KV cache of {rows * row:,} tokens; "
            f"{model.device.name} has room for {max(room, 0):,} beside the weights",
        )


def _most_rows(lab: Lab, limits: Limits) -> int:
    return min(max(lab.concurrencies), limits.max_num_seqs)


def _flag_file(lab: Lab, arm: Arm, flag: str) -> Path:
    return _arm_file(arm) if flag in vllm_flags.normalised(arm.server) else paths.labs() / lab.name / "lab.yml"


def _arm_file(arm: Arm) -> Path:
    return paths.labs() / arm.lab / f"{arm.arm}.yml"
