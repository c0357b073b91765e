from __future__ import annotations

import hashlib
import json

import pytest

from speclab.lab import Phases, Sampling, Speculation
from speclab.record.schema import LATER, MAY_DIFFER, CellSpec


@pytest.fixture
def baseline() -> CellSpec:
    return CellSpec(
        lab="lab09", arm="baseline", workload="chat", concurrency=4, repeat=0, engine="vllm", device="h100-sxm",
        target="a model", phases=Phases(), sampling=Sampling(), speculation=None, server={"max-num-seqs": 256},
        environment={}, prompts_sha256="0", code_version="1",
    )  # fmt: skip


def test_a_field_that_came_later_leaves_older_hashes_as_they_were(baseline: CellSpec) -> None:
    content = baseline.model_dump(mode="json")
    assert {content.pop(name) for name in LATER} == {None}
    assert baseline.sha256 == hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    assert baseline.model_copy(update={"endpoint": "http://a:80"}).sha256 != baseline.sha256
    assert baseline.model_copy(update={"drafter_shape_sha256": "0"}).sha256 != baseline.sha256


def test_a_plan_gives_windows_of_other_lengths_under_the_same_conditions(baseline: CellSpec) -> None:
    planned = baseline.model_copy(update={"planned": True})
    longer = planned.model_copy(update={"arm": "ngram-k8", "phases": Phases(length_s=90)})
    assert longer.conditions == planned.conditions != baseline.conditions
    assert longer.sha256 != planned.sha256 != baseline.sha256
    kept = {name: value for name, value in baseline.model_dump(mode="json").items() if name not in MAY_DIFFER}
    del kept["planned"]
    digest = hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()
    assert baseline.conditions == f"sha256:{digest[:12]}", "records from before plans keep theirs"


def test_speculation_and_the_servers_place_may_differ(baseline: CellSpec) -> None:
    speculation = Speculation(method="ngram", num_speculative_tokens=8, prompt_lookup_min=2, prompt_lookup_max=4)
    changes = {"arm": "ngram-k8", "speculation": speculation, "concurrency": 8, "repeat": 2, "endpoint": "http://a:80"}
    assert baseline.model_copy(update=changes).conditions == baseline.conditions


@pytest.mark.parametrize(
    "change",
    [
        {"server": {"max-num-seqs": 256, "async-scheduling": True}},
        {"sampling": Sampling(temperature=0.7)},
        {"phases": Phases(length_s=30)},
        {"environment": {"A": "1"}},
        {"target": "another model"},
        {"prompts_sha256": "1"},
        {"code_version": "2"},
    ],
)
def test_anything_else_makes_other_conditions(baseline: CellSpec, change: dict[str, object]) -> None:
    assert baseline.model_copy(update=change).conditions != baseline.conditions
