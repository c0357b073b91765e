"""Rules about the vLLM of this environment: there at all, its version against the method, its runner, its flags."""

from __future__ import annotations

import re

from speclab.doctor.base import Case, Diagnosis, say

DRAFT_MODEL_GONE = ((0, 10), (0, 15))
"""Versions, from and up to, whose engine V1 had no draft model: 0.10.0 refuses what 0.9.2 took (vllm#22047), 0.13.0
still does (vllm#31883), and vllm#24322 brings it back. No issue names the first release that has it."""
EAGLE3_SINCE = (0, 8, 5)
V2_DRAFTS_SINCE = (0, 32)
"""The first version seen whose runner V2 takes n-gram and draft models; those just before it were not looked at."""
INSTALLING = "https://docs.vllm.ai/en/latest/getting_started/installation/"
CPU_BUILD = "https://docs.vllm.ai/en/latest/getting_started/installation/cpu/"
CPU_SAMPLER = "vllm/utils/cpu_triton_utils.py (vLLM 0.32)"
"""Where the CPU sampler asserts that acceptance is not synthetic."""
RUNNER = "VLLM_USE_V2_MODEL_RUNNER"


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version (``0.32.0+cpu`` gives 0, 32, 0)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def installed(case: Case) -> list[Diagnosis]:
    """Find no vLLM here, or one that was built for another kind of machine."""
    machine = case.machine
    if machine.vllm is None:
        here = "cpu" if case.on_cpu else "gpu"
        remedy = f"make install-{here} and run .venv-{here}/bin/speclab"
        if case.on_cpu:
            remedy += ", or make install-gpu on a machine with an NVIDIA GPU"
        return say("will fail", "vLLM", "not installed in this environment", remedy, INSTALLING)
    found = f"{machine.vllm}, {'CPU' if machine.vllm_build == 'cpu' else 'GPU'} build"
    if machine.vllm_build == "gpu" and case.on_cpu:
        return say("will fail", "vLLM", f"{found}, and no NVIDIA GPU here",
                           "run where nvidia-smi shows a GPU, or make install-cpu", CPU_BUILD)  # fmt: skip
    if machine.vllm_build == "cpu" and not case.on_cpu:
        return say("will mislead", "vLLM", f"{found}, which leaves the {machine.gpus[0].name} idle",
                           "make install-gpu and run .venv-gpu/bin/speclab", INSTALLING)  # fmt: skip
    return say("fine", "vLLM", found, "", INSTALLING)


def method(case: Case) -> list[Diagnosis]:
    """Find a way of drafting that this version does not have, or of accepting that its CPU build does not."""
    if case.method is None:
        return []
    version, rule = case.machine.vllm, "method"
    if version is None:
        return say("not known here", rule, f"whether vLLM has {case.method}: none is installed")
    found = f"{case.method} on vLLM {version}"
    since, until = DRAFT_MODEL_GONE
    if case.method == "draft_model" and since <= numbers(version) < until:
        return say("will fail", rule, f"{found}, which has no draft models",
                           "use vLLM 0.15 or newer", "vllm#22047", "vllm#31883", "vllm#24322")  # fmt: skip
    if case.method == "eagle3" and numbers(version) < EAGLE3_SINCE:
        return say("will fail", rule, f"{found}, which is older than EAGLE-3", "use vLLM 0.8.5 or newer",
                           "vllm#16937")  # fmt: skip
    if case.machine.vllm_build == "cpu" and case.arm.is_forced and not case.machine.synthetic_on_cpu:
        return say("will fail", rule, "synthetic acceptance, which vLLM's CPU sampler refuses at the first request",
                   "install this project where vLLM is: its plugin supplies it", CPU_SAMPLER)  # fmt: skip
    return say("fine", rule, found, "", "vllm#24322" if case.method == "draft_model" else INSTALLING)


def runner(case: Case) -> list[Diagnosis]:
    """Find arms that would run on different model runners, or be refused by the one that is forced."""
    if case.method not in ("ngram", "draft_model"):
        return []
    forced, rule = case.variable(RUNNER), "model runner"
    cites = ("intel/intel-xpu-backend-for-triton#7166", "vllm#45397", "vllm#44443")
    remedy = f'put {RUNNER}: "0" under environment in lab.yml'
    version = case.machine.vllm
    if forced in ("0", "false", "False"):
        return say("fine", rule, "V1 in every arm", "", *cites)
    if case.machine.vllm_build == "cpu":
        return say("fine", rule, "the CPU build runs V1 without Triton", "", *cites)
    if version is not None and numbers(version) >= V2_DRAFTS_SINCE:
        return say("fine", rule, f"vLLM {version} takes {case.method} on V2", "", *cites)
    found = f"{RUNNER} is {forced or 'not set'}; some versions before 0.32 "
    if version is None:
        return say("not known here", rule, f"{found}differ in what {case.method} runs on", remedy, *cites)
    if forced:
        return say("will fail", rule, f"{found}refuse {case.method} on runner V2", remedy, *cites)
    return say("will mislead", rule, f"{found}may put this arm alone on runner V1", remedy, *cites)


def accepted(case: Case) -> list[Diagnosis]:
    """Find flags that the installed vLLM's own parser refuses."""
    if case.machine.refused is None:
        return say("not known here", "flags", "whether vLLM takes the flags: its parser was not asked")
    refusal = case.machine.refused.get(case.arm.arm)
    if refusal is not None:
        return say("will fail", "flags", refusal, f"mend server in lab.yml or {case.arm.arm}.yml",
                           "https://docs.vllm.ai/en/latest/configuration/serve_args.html")  # fmt: skip
    return say("fine", "flags", f"taken by the parser of vLLM {case.machine.vllm}")
