"""Check that speculation leaves the text as it is: the same prompts once through each arm's server, one at a time.

One at a time, so that only the arm differs: the other rows of a batch change the last bits of a row's logits too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from speclab import lab as labs
from speclab import paths, prompts
from speclab.engines import EngineOptions, vllm, vllm_flags
from speclab.engines.base import NOT_STARTED, EngineFailure, EngineIdentity
from speclab.engines.endpoint import Endpoint
from speclab.engines.writing import TextAnswer
from speclab.errors import UserError
from speclab.lab import BASELINE, Arm, Lab, Sampling
from speclab.metrics import text
from speclab.prompts.base import Prompt
from speclab.record import provenance
from speclab.record import text as record
from speclab.record.schema import Failure
from speclab.record.text import ArmText, TextRecord

Progress = Callable[[str], None]


def run(
    lab: str,
    *,
    arms: Sequence[str] | None = None,
    dtype: str = "float32",
    prompts_each: int = 4,
    max_tokens: int = 64,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> TextRecord:
    """Run and record a text check on real vLLM.

    Parameters
    ----------
    lab : str
        Name of the lab; its flags are used but for ``dtype``.
    arms : sequence of str, optional
        Arms besides the baseline; all where not given, but for those whose acceptance is forced.
    dtype : str
        Number format of weights and activations. In float32 texts should be equal; in bfloat16 near-ties fall apart.
    prompts_each : int
        How many of each workload's prompts.
    max_tokens : int
        Most tokens of an answer.
    out : str or Path, optional
        Folder for ``runs/``; the checkout's ``data`` where not given.
    progress : callable, optional
        Told one line for each arm.

    Raises
    ------
    UserError
        An unknown arm, an arm whose text is not the target's, or no vLLM here.
    """
    the_lab = labs.load(lab)
    the_lab = the_lab.model_copy(update={"server": {**the_lab.server, "dtype": dtype}})
    chosen = [the_lab.arm(name) for name in (BASELINE, *_besides_the_baseline(the_lab, arms))]
    sampling = Sampling(temperature=0, max_tokens=max_tokens, seed=the_lab.sampling.seed)
    sets = {workload: prompts.load(workload, the_lab.sampling.seed) for workload in the_lab.workloads}
    wanted = [prompt for each in sets.values() for prompt in each.measured[:prompts_each]]
    data = Path(out) if out is not None else paths.root() / "data"
    device = EngineOptions().device_of("vllm", the_lab)

    result = TextRecord(
        lab=lab,
        engine="vllm",
        device=device,
        target=the_lab.target.model,
        dtype=dtype,
        sampling=sampling,
        environment=the_lab.environment,
        prompts_sha256={workload: each.sha256 for workload, each in sets.items()},
        arms=(),
    )
    for arm in chosen:
        if progress is not None:
            progress(f"{arm.arm}: {len(wanted)} prompts, {dtype}")
        log = data / "runs" / f"vllm-{device}" / lab / arm.arm / "server.log"
        written = asyncio.run(_arm(the_lab, arm, wanted, sampling, device, log))
        result = result.model_copy(update={"arms": (*result.arms, written)})
        record.write(data / "runs", result)  # after each arm: what was written survives what comes next
    return result


def table(check: TextRecord) -> pd.DataFrame:
    """Return a row for each arm but the baseline: ``arm``, ``dtype``, and `speclab.metrics.text.summarise`'s values."""
    baseline = next(arm for arm in check.arms if arm.arm == BASELINE).table()
    others = [arm for arm in check.arms if arm.arm != BASELINE]
    rows = [{"arm": arm.arm, "dtype": check.dtype, **_summary(baseline, arm)} for arm in others]
    frame = pd.DataFrame(rows)
    unknown = [name for name in frame.columns if frame[name].isna().any()]
    return frame.astype(dict.fromkeys(unknown, "float64"))


def _summary(baseline: pd.DataFrame, arm: ArmText) -> dict[str, float | int | None]:
    return text.summarise(text.compare(baseline, arm.table()))


def _besides_the_baseline(lab: Lab, names: Sequence[str] | None) -> list[str]:
    asked = [name for name in names or lab.arms if name != BASELINE]
    forced = [name for name in asked if lab.arm(name).is_forced]
    if names and forced:
        raise UserError(
            f"{forced[0]} accepts tokens by chance: its text is not the target's", "leave it out", key="--arms"
        )
    return [name for name in asked if name not in forced]


async def _arm(lab: Lab, arm: Arm, wanted: Sequence[Prompt], sampling: Sampling, device: str, log: Path) -> ArmText:
    opening = vllm.opening(lab, arm, log)
    started_at = provenance.now()
    answers: list[TextAnswer] = []
    failure = None
    identity = EngineIdentity(engine="vllm", version=NOT_STARTED, device=device)
    try:
        async with opening.engine() as engine:
            assert isinstance(engine, Endpoint)
            identity = engine.identity
            for prompt in wanted:
                answers.append(await engine.write(prompt, sampling))
    except EngineFailure as gone:
        failure = Failure(kind=gone.kind, reason=gone.reason, log_tail=gone.log_tail)
    return ArmText(
        arm=arm.arm,
        speculation=arm.speculation,
        server=vllm_flags.of(lab, arm),
        provenance=provenance.of(identity, started_at, command=opening.command),
        answers=tuple(answers),
        failure=failure,
    )
