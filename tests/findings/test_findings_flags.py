from __future__ import annotations

import pytest

from speclab.findings.flags import differences
from speclab.lab import Phases, Sampling, Speculation
from speclab.record.schema import Asked


@pytest.fixture
def baseline():
    return Asked(
        lab="lab09", arm="baseline", workload="chat", concurrency=4, repeat=0, engine="vllm", device="h100-sxm",
        target="a model", phases=Phases(), sampling=Sampling(), speculation=None, server={"max-num-seqs": 256},
        environment={}, prompts_sha256="0", code_version="1",
    )  # fmt: skip


def test_speculation_may_differ(baseline):
    speculation = Speculation(method="ngram", num_speculative_tokens=8, prompt_lookup_min=2, prompt_lookup_max=4)
    arm = baseline.model_copy(update={"arm": "ngram-k8", "speculation": speculation})
    assert differences(arm, baseline) == {}


def test_a_flag_in_one_arm_only_is_named(baseline):
    flags = {"max-num-seqs": 256, "async-scheduling": True}
    arm = baseline.model_copy(update={"arm": "ngram-k8", "server": flags})
    assert differences(arm, baseline) == {"server.async-scheduling": (True, None)}


def test_sampling_must_agree(baseline):
    arm = baseline.model_copy(update={"sampling": Sampling(temperature=0.7)})
    assert differences(arm, baseline) == {"sampling.temperature": (0.7, 0.0)}
