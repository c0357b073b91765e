"""The page's workloads, presets, fleet and loads. Acceptance is assumed throughout; nothing here was measured.

Source: the public site *inference-tradeoffs-explained* and its simulator *Disaggregated_Inference_Sim*. Lengths of chat
are the means of ShareGPT in the vLLM paper (arXiv:2309.06180), those of long-rag follow arxiv_summarization in
Sarathi-Serve (arXiv:2403.02310); the rest is its author's choice.
"""

from __future__ import annotations

from speclab.config import validated
from speclab.replications.chapter10.fleet.fleet import Fleet
from speclab.replications.chapter10.fleet.workload import FleetWorkload, Length
from speclab.roofline.devices import device as find_device

DEVICES = ("h100-sxm", "h200-sxm", "b200")
"""The devices of the sweep."""

WORKLOADS = {
    "chat": FleetWorkload(
        name="Chat",
        new_input=Length(mean=161.31, cv=1.0, most=1024),
        output=Length(mean=337.99, cv=1.0, most=1024),
        turns=3,
        think_s=10,
        system_prompts=8,
        system_prompt=512,
        ttft_slo_s=1.0,
        tpot_slo_s=0.05,
    ),
    "coding-agent": FleetWorkload(
        name="Coding agent",
        new_input=Length(mean=512, cv=0.8, most=4096),
        output=Length(mean=160, cv=0.6, most=1024),
        turns=8,
        think_s=2,
        system_prompts=2,
        system_prompt=6144,
        ttft_slo_s=1.5,
        tpot_slo_s=0.04,
    ),
    "offline-batch": FleetWorkload(
        name="Offline batch",
        new_input=Length(mean=2048, cv=0.5, most=8192),
        output=Length(mean=256, cv=0.5, most=2048),
        ttft_slo_s=60,
        tpot_slo_s=0.5,
    ),
    "long-rag": FleetWorkload(
        name="Long-context RAG",
        new_input=Length(mean=7904, cv=0.50, most=15360),
        output=Length(mean=230, cv=0.48, most=1024),
        system_prompts=4,
        system_prompt=1024,
        ttft_slo_s=5.0,
        tpot_slo_s=0.05,
    ),
    "voice": FleetWorkload(
        name="Real-time voice",
        new_input=Length(mean=64, cv=0.5, most=512),
        output=Length(mean=48, cv=0.5, most=256),
        turns=6,
        think_s=3,
        system_prompts=4,
        system_prompt=1024,
        ttft_slo_s=0.3,
        tpot_slo_s=0.025,
    ),
}
"""The page's five workloads by slug."""

REFERENCE_RATE = {
    "chat": 1.9375,
    "coding-agent": 0.046875,
    "offline-batch": 5e5,
    "long-rag": 0.59375,
    "voice": 0.1953125,
}
"""Load at which latencies are compared, sessions/s: half of what the plain H100 fleet carries. Offline: all at once."""

SATURATING = {"offline-batch": 1e6}
"""Workloads whose requests arrive all at once, and the rate that does it, sessions/s; no search is needed."""

SEED = 1
ALPHA = 0.7
"""The page's acceptance, the same at every position; assumed."""


def fleet(device: str) -> Fleet:
    """Return the page's fleet: Llama 3 70B on eight GPUs, two instances of four."""
    find_device(device)
    return validated(Fleet, {"device": device, "target": "llama-3-70b", "gpus": 4, "instances": 2})
