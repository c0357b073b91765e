from __future__ import annotations

import numpy as np
import plain_serving
import pytest

from speclab.replications.chapter10.fleet.fleet import AssumedSpeculation, Charges, Fleet
from speclab.replications.chapter10.fleet.simulate import SLO, SLOViolated, serve
from speclab.replications.chapter10.fleet.workload import FleetWorkload, Length, Requests, draw

MTP = AssumedSpeculation(drafter="mtp-head-8b", k=3, alpha=0.7)
TALK = FleetWorkload(
    name="talk", new_input=Length(mean=200, cv=1.0, most=900), output=Length(mean=60, cv=1.0, most=300), turns=3,
    think_s=0.4, system_prompts=2, system_prompt=300,
)  # fmt: skip
ONCE = TALK.model_copy(update={"turns": 1, "think_s": 0.0})

FLEETS = {
    "baseline": (Fleet(instances=2), TALK, 6.0),
    "mtp": (Fleet(instances=2, speculation=MTP), TALK, 6.0),
    "draft model, charged, on four GPUs": (
        Fleet(target="llama-3-70b", gpus=4,
              speculation=AssumedSpeculation(drafter="llama-3.2-1b", k=4, alpha=0.6, seed=5),
              charges=Charges(launch_s=5e-4, all_reduce=True)),
        TALK, 3.0,
    ),
    "n-gram with a draft now and then": (
        Fleet(speculation=AssumedSpeculation(k=3, marginal=(0.5, 0.3, 0.25), draft_rate=0.4, host_s=1e-3)), TALK, 4.0,
    ),
    "a floor for drafting": (
        Fleet(speculation=AssumedSpeculation(drafter="eagle3-head-8b", k=2, marginal=(0.8, 0.5), floor_s=4e-4)),
        TALK, 4.0,
    ),
    "cut off at 8 rows": (Fleet(speculation=MTP.model_copy(update={"below_rows": 8})), TALK, 6.0),
    "full: rows, room and prompts of a pass": (
        Fleet(device="a100-sxm", speculation=MTP, max_rows=12, max_prompt_tokens=700, kv_tokens=6000), ONCE, 200.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FLEETS)
def test_the_very_timestamps_of_the_plain_implementation(name: str) -> None:
    fleet, workload, rate = FLEETS[name]
    requests = draw(workload, rate, seed=3, sessions=60)
    served = serve(fleet, requests)
    rows, instances = plain_serving.serve(fleet, requests)
    assert served.arrival_s.tolist() == [row.arrival_s for row in rows]
    assert served.first_s.tolist() == [row.first_s for row in rows]
    assert served.finish_s.tolist() == [row.finish_s for row in rows]
    assert [passes.end_s for passes in served.by_instance] == [each.decode_end_s for each in instances]
    assert sum(passes.energy_j for passes in served.by_instance) == pytest.approx(
        sum(each.energy_j for each in instances), rel=1e-12
    )
    if fleet.speculation is None or fleet.speculation.below_rows is None:
        for request, row in enumerate(rows):
            passes = served.by_instance[served.instance[request]]
            first, count = int(served.first_pass[request]), int(served.passes[request])
            kept = fleet.bursts(request, row.output - 1).kept
            assert row.token_s[1:] == np.repeat(passes.end_s[first : first + count], kept).tolist()


def test_a_request_that_no_instance_can_hold_is_turned_away() -> None:
    requests = draw(ONCE, 5.0, seed=3, sessions=40)
    fleet = Fleet(kv_tokens=int(np.median(requests.prompt + requests.output)))
    served = serve(fleet, requests)
    too_long = requests.prompt + requests.output > fleet.kv_room
    assert 0 < too_long.sum() < 40
    np.testing.assert_array_equal(np.isnan(served.finish_s), too_long)
    np.testing.assert_array_equal(served.instance == -1, too_long)


def test_one_request_by_hand() -> None:
    fleet = Fleet()
    served = serve(fleet, Requests(np.array([512]), np.array([3]), np.array([1.0]), np.array([0.0])))
    # the source: 14.817294 ms for the prompt; then 513 and 514 tokens are cached, at 512 a pass takes 6.1255840 ms
    assert (served.first_s[0] - 1) * 1e3 == pytest.approx(14.817294, abs=5e-7)
    byte_s = 131_072 / (3.35e12 * 0.8)
    assert served.finish_s[0] - served.first_s[0] == pytest.approx(2 * 0.006125583952238806 + 3 * byte_s, rel=1e-12)
    assert (served.passes[0], served.first_pass[0], served.instance[0]) == (2, 0, 0)


def test_the_router_does_not_count_prompts_that_are_being_read() -> None:
    """Three at once: the first is being read when the others come, so all but the third go to the first instance."""
    requests = Requests(np.array([512] * 3), np.array([9] * 3), np.array([0.0, 1e-4, 2e-4]), np.zeros(3))
    assert serve(Fleet(instances=2), requests).instance.tolist() == [0, 0, 1]


def test_a_run_that_misses_its_slos_too_often_is_given_up() -> None:
    requests = draw(ONCE, 50.0, seed=3, sessions=60)
    late = (lambda served: served.first_s - served.arrival_s)(serve(Fleet(), requests))
    limit = float(np.sort(late)[-10])
    assert len(serve(Fleet(), requests, slo=SLO(limit, 1.0, 0, 9)).first_s) == 60
    with pytest.raises(SLOViolated):
        serve(Fleet(), requests, slo=SLO(limit, 1.0, 0, 8))
