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
        Name of the lab; its flags are used except ``dtype``.
    arms : sequence of str, optional
        Arms besides the baseline; by default all except those whose acceptance is forced.
    dtype : str
        Number format of weights and activations. In float32 texts should be equal; in bfloat16 near-ties may differ.
    prompts_each : int
        Prompts taken from each workload.
    max_tokens : int
        Most tokens of an answer.
    out : str or Path, optional
        Folder for ``runs/``; the checkout's ``data`` by default.
    progress : callable, optional
        Called with one line for each arm.

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
    selected = [prompt for prompt_set in sets.values() for prompt in prompt_set.measured[:prompts_each]]
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
        prompts_sha256={workload: prompt_set.sha256 for workload, prompt_set in sets.items()},
        arms=(),
    )
    for arm in chosen:
        if progress is not None:
            progress(f"{arm.arm}: {len(selected)} prompts, {dtype}")
        log = data / "runs" / f"vllm-{device}" / lab / arm.arm / "server.log"
        written = asyncio.run(_arm(the_lab, arm, selected, sampling, device, log))
        result = result.model_copy(update={"arms": (*result.arms, written)})
        record.write(data / "runs", result)  # after each arm, so that a later failure loses nothing
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
    candidates = [name for name in names or lab.arms if name != BASELINE]
    forced = [name for name in candidates if lab.arm(name).is_forced]
    if names and forced:
        raise UserError(
            f"{forced[0]} accepts tokens by chance: its text is not the target's", "leave it out", key="--arms"
        )
    return [name for name in candidates if name not in forced]


async def _arm(lab: Lab, arm: Arm, selected: Sequence[Prompt], sampling: Sampling, device: str, log: Path) -> ArmText:
    opening = vllm.opening(lab, arm, log)
    started_at = provenance.now()
    answers: list[TextAnswer] = []
    failure = None
    identity = EngineIdentity(engine="vllm", version=NOT_STARTED, device=device)
    try:
        async with opening.engine() as engine:
            assert isinstance(engine, Endpoint)
            identity = engine.identity
            for prompt in selected:
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
