"""What users of speculation in production learned the hard way; each links to where they told it (read it first)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from speclab.advice.base import Part, Warned
from speclab.engines import vllm_flags
from speclab.findings.speeds import MIX
from speclab.lab import BASELINE, Arm, Lab

VLLM = "https://github.com/vllm-project/vllm"
DYNAMIC = "https://docs.vllm.ai/en/latest/features/speculative_decoding/dynamic_speculative_decoding/"
TESTED_WITH_A_SCHEDULE = ("eagle3",)
"""Of the methods that a lab may have, those that vLLM's page says a schedule was tested with."""


def warnings(lab: Lab, parts: Sequence[Part], arms: Sequence[Arm]) -> tuple[Warned, ...]:
    """Return the warnings that concern this advice.

    Parameters
    ----------
    lab : Lab
        Whose server flags.
    parts : sequence of Part
        The advice.
    arms : sequence of Arm
        The arms that it names, without the baseline.
    """
    scheduled = [part for part in parts if part.schedule is not None]
    methods: set[str] = {arm.speculation.method for arm in arms if arm.speculation is not None}
    warned: list[Warned] = []
    if scheduled:
        names = {part.drafter for part in scheduled}
        used: set[str] = {arm.speculation.method for arm in arms if arm.arm in names and arm.speculation is not None}
        warned += _about_schedules(lab, used)
    if methods:
        warned += _about_speculation(lab, methods)
    arms_of = {part.name: {served.arm for served in part.served} - {BASELINE} for part in parts if part.name != MIX}
    if len({frozenset(names) for names in arms_of.values()}) > 1:
        text = (
            "One server holds one way of drafting. Where workloads want different arms, route them to servers of their "
            "own, or serve all with one and accept the regret shown."
        )
        warned.append(Warned(about="one method a server", text=text, links=(f"{VLLM}/issues/46977",)))
    return tuple(warned)


def _about_schedules(lab: Lab, methods: set[str]) -> Iterator[Warned]:
    yield Warned(
        about="the threshold",
        text=(
            "vLLM looks k up anew at each step by all requests in that step, prefills included, and has no memory: "
            "near a threshold k flips from step to step, and one report saw throughput collapse there. Keep the usual "
            "load away from it; a gap needs a router in front, or two servers."
        ),
        links=(f"{VLLM}/issues/49548",),
    )
    yield Warned(
        about="k = 0 is not free",
        text=(
            "A server with a schedule that drafts nothing is slower than one without speculation: by 6 to 22% in one "
            "report, by 21 to 31% at short contexts in another, and the drafter keeps its memory. Above the gap a "
            "server without speculation is the better one. Measure both."
        ),
        links=(f"{VLLM}/issues/49986", f"{VLLM}/issues/49548"),
    )
    if lab.environment.get("VLLM_USE_V2_MODEL_RUNNER") == "0":
        yield Warned(
            about="model runner",
            text=(
                "On model runner V1, which this lab asks for, a schedule makes vLLM use piecewise CUDA graphs in place "
                "of full ones, also where k stays the same. Runner V2 keeps them."
            ),
            links=(DYNAMIC,),
        )
    yield Warned(
        about="data parallel",
        text="With --data-parallel-size above 1 vLLM drops the schedule and drafts the full k at each load.",
        links=(DYNAMIC,),
    )
    if methods - set(TESTED_WITH_A_SCHEDULE):
        yield Warned(
            about="tested methods",
            text=(
                "vLLM's page names Eagle, Eagle-3 and DFlash as tested with a schedule; "
                f"{' and '.join(sorted(methods - set(TESTED_WITH_A_SCHEDULE)))} may or may not work with one."
            ),
            links=(DYNAMIC,),
        )


def _about_speculation(lab: Lab, methods: set[str]) -> Iterator[Warned]:
    if not vllm_flags.normalised(lab.server).get("enforce-eager"):
        yield Warned(
            about="CUDA graphs",
            text=(
                "Let the capture sizes hold n x (k + 1) for each k in use and each batch size n that is served, the "
                "largest included: where the last one was cut off, one report had 25 in place of 133 tokens per second."
            ),
            links=(f"{VLLM}/issues/54933", f"{VLLM}/pull/37865", f"{VLLM}/pull/30330"),
        )
    if "ngram" in methods:
        yield Warned(
            about="asynchronous scheduling",
            text=(
                "vLLM turns asynchronous scheduling off for n-gram and leaves it on for the baseline, so a comparison "
                "with vLLM's defaults charges n-gram for both. This lab's flags say what it did."
            ),
            links=(f"{VLLM}/pull/31998", f"{VLLM}/pull/29184"),
        )
        yield Warned(
            about="acceptance length",
            text=(
                "Do not set n-gram's threshold by the acceptance length that vLLM prints: steps without a draft are "
                "not in it. Use tokens per step over all steps."
            ),
            links=(f"{VLLM}/pull/24344",),
        )
    if "eagle3" in methods:
        yield Warned(
            about="long contexts",
            text=(
                "A head returns less where the context is longer than it was trained on: one report has 2.3 tokens per "
                "step at 2,000 tokens of context and 1.1 at 16,000. Measure at your own lengths."
            ),
            links=("https://github.com/vllm-project/speculators/pull/684",),
        )
