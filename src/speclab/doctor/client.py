"""Rules about the client: what it sees cleanly, and the address of a server that is up."""

from __future__ import annotations

from speclab import prompts
from speclab.doctor.base import Case, Diagnosis, say
from speclab.doctor.weights import target_shape
from speclab.engines.address import identity
from speclab.errors import UserError
from speclab.roofline.devices import DEVICES
from speclab.roofline.step import Rows, StepModel

SLOW_CLIENTS = ("vllm#7935", "vllm#39963", "gpustack/gpustack#2324")
SERVING = "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"


def capacity(case: Case) -> list[Diagnosis]:
    """Find a client that does not see events as the server sends them: it then measures itself."""
    clean, rule = case.machine.clean_rate_per_s, "client"
    if clean is None:
        return say("not known here", rule, "how many events a second this client sees as they are sent",
                   "run `speclab selftest` while the machine has nothing else to do", *SLOW_CLIENTS)  # fmt: skip
    follows = f"sees up to {clean:,.0f} events/s as they are sent"
    step_ms = expected_step_ms(case)
    if step_ms is None:
        return say("not known here", rule, f"{follows}; how long a step takes here is not known",
                   "look at the check of the client's rate", *SLOW_CLIENTS)  # fmt: skip
    expected = 1000 * case.top / step_ms
    found = f"{follows}; {case.top} in flight at steps of {step_ms:.1f} ms send {expected:,.0f} events/s"
    if expected > clean:
        remedy = "a client with faster cores and nothing else to do, or a lower concurrency"
        return say("will mislead", rule, found, remedy, *SLOW_CLIENTS)
    return say("fine", rule, found, "", *SLOW_CLIENTS)


def expected_step_ms(case: Case) -> float | None:
    """Return the time of the baseline's step at the highest concurrency by the roofline model, ms.

    None where the lab does not say what it would simulate. No arm's step is shorter than the baseline's.
    """
    shape = target_shape(case)
    if shape is None or case.lab.simulated is None:
        return None
    counts = [prompts.token_counts(case.lab.target.tokens, name).values() for name in case.lab.workloads]
    shortest = min(min(of_one) for of_one in counts)  # a short context makes a short step
    rows = Rows(count=case.top, context=case.top * shortest)
    return 1000 * StepModel(DEVICES[case.lab.simulated.device], shape).seconds(rows)


def endpoint(case: Case) -> list[Diagnosis]:
    """Find a server of which no address is known; the flags of one that is up cannot be seen from here."""
    address = case.machine.base_url
    if address is None:
        return say("will fail", "endpoint", "no address", "give --base-url, or set SPECLAB_BASE_URL", SERVING)
    try:
        shown = identity(address)
    except UserError as mistake:
        return say("will fail", "endpoint", mistake.problem, mistake.remedy, SERVING)
    found = f"what {shown} was started with: its flags cannot be seen from here"
    key = "" if case.machine.has_api_key else "; export OPENAI_API_KEY if it asks for one"
    return say("not known here", "endpoint", found, f"start it with the flags of lab.yml and of the arm{key}",
               SERVING)  # fmt: skip
