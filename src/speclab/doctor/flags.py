"""Rules about the flags of `vllm serve`: what they cap, what they leave to vLLM, where two arms differ."""

from __future__ import annotations

from speclab.doctor.base import Case, Diagnosis, say
from speclab.doctor.versions import RUNNER, numbers
from speclab.engines import vllm_flags

LEAST_BATCHED_TOKENS = 2048
"""What vLLM takes where the flag is not given, or more, by version and device."""
SERVE_FLAGS = "https://docs.vllm.ai/en/latest/configuration/serve_args.html"
ONE_ARM_ONLY = "vllm#29184"
"""Asynchronous scheduling, with a look-up made for it, brings n-gram 21 to 39% more throughput there."""
OURS = ("model", "host", "port", "served-model-name", "api-key", "speculative-config", "spec-method", "spec-model",
        "spec-tokens")  # fmt: skip
"""Flags that this program gives itself, or that would hide the server from it."""
ASYNC_ON_V2_SINCE = (0, 33)
"""The first version whose runner V2 schedules n-gram asynchronously too; V1 still does not."""
ASYNC_ON_V2 = "vllm/config/vllm.py (vLLM 0.33)"
"""Where the arms that are not scheduled asynchronously are those of runner V1 alone."""


def seats(case: Case) -> list[Diagnosis]:
    """Find fewer seats than requests in flight: the rest waits, and the concurrency named is not the real one."""
    cites = ("vllm#6801", "modelscope/evalscope#431")
    seats = case.whole_number("max-num-seqs")
    if seats is None:
        return say("not known here", "max-num-seqs", "not given, and vLLM's own differs by version and device",
                   f"max-num-seqs: {case.top} in lab.yml", *cites)  # fmt: skip
    found = f"{seats} seats for {case.top} requests in flight"
    if seats < case.top:
        return say(
            "will mislead", "max-num-seqs", found, f"max-num-seqs: {case.top} or more, or fewer in flight", *cites
        )
    return say("fine", "max-num-seqs", found, "", *cites)


def batched_tokens(case: Case) -> list[Diagnosis]:
    """Find a step that may not hold k + 1 tokens of each request: drafts are cut, or rows wait."""
    optimization = "https://docs.vllm.ai/en/latest/configuration/optimization.html"
    most = case.whole_number("max-num-batched-tokens")
    wanted, n = max((n * (case.arm.k_at(n) + 1), n) for n in case.lab.concurrencies)
    if most is None:
        found = f"not given; {wanted} tokens are needed in one step, and vLLM's own is {LEAST_BATCHED_TOKENS} or more"
        if wanted <= LEAST_BATCHED_TOKENS:
            return say("fine", "max-num-batched-tokens", found, "", optimization)
        return say("not known here", "max-num-batched-tokens", found, f"{wanted} or more in lab.yml", optimization)
    found = f"{most}; a step holds {n} x {case.arm.k_at(n) + 1} = {wanted} tokens"
    seats = case.whole_number("max-num-seqs")
    if seats is not None and most < seats:
        return say("will fail", "max-num-batched-tokens", f"{most}, below max-num-seqs {seats}",
                   f"at least {max(seats, wanted)}", optimization)  # fmt: skip
    if most < wanted:
        return say("will mislead", "max-num-batched-tokens", found, f"at least {wanted}", optimization)
    return say("fine", "max-num-batched-tokens", found, "", optimization)


def prefix_caching(case: Case) -> list[Diagnosis]:
    """Find prompts that are not read again when they come round: the second round is faster than the first."""
    cites, value = ("vllm#52884", "vllm#54227"), case.flags.get("enable-prefix-caching")
    if value is False:
        return say("fine", "prefix caching", "off", "", *cites)
    found = "on" if value else "not given, and on by default"
    return say("will mislead", "prefix caching", f"{found}: repeated prompts are not read again",
               "enable-prefix-caching: false in lab.yml", *cites)  # fmt: skip


def scheduling(case: Case) -> list[Diagnosis]:
    """Find asynchronous scheduling that vLLM turns off in some arms only, which then pay for more than drafts."""
    rule, value = "async scheduling", case.flags.get("async-scheduling")
    cites = ("vllm#31998", "vllm#24799", "vllm#48341")
    if case.on_cpu:
        return say("fine", rule, "off in every arm on a CPU", "", *cites)
    forced, on_v2 = case.variable(RUNNER), numbers(case.machine.vllm or "") >= ASYNC_ON_V2_SINCE
    if value is not False and on_v2 and forced == "1":
        return say("fine", rule, "on in every arm, which runner V2 takes", "", ASYNC_ON_V2)
    if value is True and case.method == "ngram" and on_v2 and forced is None:
        return say("not known here", rule, "on, which vLLM takes with n-gram on runner V2 only",
                   f'async-scheduling: false in lab.yml, or {RUNNER}: "1"', ASYNC_ON_V2)  # fmt: skip
    if value is True and case.method == "ngram":
        return say(
            "will fail", rule, "on, which vLLM refuses with n-gram", "async-scheduling: false in lab.yml", *cites
        )
    if value is None:
        found = "not given: on by default, off for n-gram and, in older versions, for draft models"
        return say("will mislead", rule, found, "async-scheduling: false in lab.yml", *cites)
    return say("fine", rule, "on" if value else "off", "", *cites)


def same_flags(case: Case) -> list[Diagnosis]:
    """Find what else than speculation an arm has and its baseline has not: it makes a speed-up of its own."""
    if case.baseline is None:
        return say("will mislead", "same flags", "the lab has no baseline to compare with", "add a baseline arm",
                   ONE_ARM_ONLY)  # fmt: skip
    ours, theirs = case.flags, vllm_flags.of(case.lab, case.baseline)
    names = [name for name in dict.fromkeys([*ours, *theirs]) if ours.get(name) != theirs.get(name)]
    if not names:
        return say("fine", "same flags", "as the baseline's", "", ONE_ARM_ONLY)
    pairs = ", ".join(f"{name} {_short(ours.get(name))} against {_short(theirs.get(name))}" for name in names)
    return say("will mislead", "same flags", f"{pairs} in the baseline", "move server flags to lab.yml", ONE_ARM_ONLY)


def lookup(case: Case) -> list[Diagnosis]:
    """Find n-gram bounds left to vLLM, which makes them 5 and 5, or copies the one that is given."""
    speculation = case.arm.speculation
    if speculation is None or case.method != "ngram":
        return []
    least, most = speculation.prompt_lookup_min, speculation.prompt_lookup_max
    if least is None or most is None:
        return say("will mislead", "look-up bounds", "left to vLLM", "give prompt_lookup_min and prompt_lookup_max",
                   "vllm#56516")  # fmt: skip
    if least > most:
        return say("will fail", "look-up bounds", f"from {least} to {most}", "put the smaller one first", "vllm#56516")
    return say("fine", "look-up bounds", f"{least} to {most} tokens", "", "vllm#56516")


def streaming(case: Case) -> list[Diagnosis]:
    """Find a server that sends several steps as one event: the step gap is then not a step."""
    interval = case.whole_number("stream-interval")
    if interval is not None and interval > 1:
        return say(
            "will mislead", "stream interval", f"one event is {interval} steps", "stream-interval: 1", SERVE_FLAGS
        )
    return say("fine", "stream interval", "one event is one step", "", SERVE_FLAGS)


def address(case: Case) -> list[Diagnosis]:
    """Find a flag that this program gives itself, or a machine that lets it listen nowhere."""
    mine = [name for name in OURS if name in case.flags]
    if mine:
        return say("will fail", "address", f"{', '.join(mine)} given, which this program does for each start",
                   "take it out of server; what speculates is the arm's speculation", SERVE_FLAGS)  # fmt: skip
    if not case.machine.can_listen:
        return say("will fail", "address", "no port of 127.0.0.1 can be listened on", "allow it in the sandbox",
                   SERVE_FLAGS)  # fmt: skip
    return say("fine", "address", "127.0.0.1, a free port at each start", "", SERVE_FLAGS)


def _short(value: object) -> str:
    text = "not given" if value is None else str(value)
    return text if len(text) < 24 else f"{text[:20]}..."
