from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speclab.errors import UserError
from speclab.lab import WorkloadName
from speclab.prompts import load
from speclab.prompts.workloads import WORKLOADS

MEASURED = {"chat": 40, "completion": 164, "revision": 164}


def test_the_workloads_are_those_a_lab_may_name():
    assert tuple(WORKLOADS) == get_args(WorkloadName)


@pytest.mark.parametrize("workload", MEASURED)
def test_counts_and_names(workload: str):
    prompts = load(workload, seed=9)
    everything = [*prompts.measured, *prompts.warm_up]
    assert len(prompts.measured) == MEASURED[workload]
    assert len(prompts.warm_up) == 8
    assert {prompt.workload for prompt in everything} == {workload}
    assert len({prompt.id for prompt in everything}) == len(everything)
    assert all(prompt.text.strip() for prompt in everything)


@pytest.mark.parametrize("workload", MEASURED)
def test_warm_up_and_measured_prompts_are_disjoint(workload: str):
    prompts = load(workload, seed=9)
    assert {prompt.id for prompt in prompts.warm_up}.isdisjoint(prompt.id for prompt in prompts.measured)
    texts = [prompt.text for prompt in (*prompts.warm_up, *prompts.measured)]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("workload", MEASURED)
def test_order_is_the_seed_s(workload: str):
    first, again, other = load(workload, seed=9), load(workload, seed=9), load(workload, seed=10)
    assert again == first
    assert again.sha256 == first.sha256
    assert other.measured != first.measured
    assert other.sha256 != first.sha256
    # an order, not a choice: the same prompts whatever the seed
    assert set(other.measured) == set(first.measured) == set(WORKLOADS[workload].measured())


@settings(deadline=None, max_examples=20)
@given(st.integers(), st.integers())
def test_seeds_only_reorder(one: int, two: int):
    assert sorted(p.id for p in load("chat", one).measured) == sorted(p.id for p in load("chat", two).measured)


def test_workloads_are_shuffled_independently():
    orders = {workload: [prompt.id for prompt in load(workload, seed=9).measured] for workload in MEASURED}
    assert orders["completion"] != orders["revision"]
    assert sorted(orders["completion"]) == sorted(orders["revision"])


def test_order_does_not_depend_on_the_process():
    # random.Random("9/chat"), whose string seeding is fixed by the language; a changed order is a changed lab
    assert [prompt.id for prompt in load("chat", seed=9).measured[:4]] == ["chat/27", "chat/28", "chat/17", "chat/09"]


def test_unknown_workload_names_those_there_are():
    with pytest.raises(UserError, match=r"unknown workload 'poetry'; the workloads: chat, completion, revision"):
        load("poetry", seed=9)
