from __future__ import annotations

import numpy as np
import plain_serving
import pytest

from speclab.replications.chapter10.fleet import metrics
from speclab.replications.chapter10.fleet.capacity import LoadTest
from speclab.replications.chapter10.fleet.fleet import AssumedSpeculation, Fleet
from speclab.replications.chapter10.fleet.served import Passes, Served
from speclab.replications.chapter10.fleet.simulate import serve
from speclab.replications.chapter10.fleet.workload import FleetWorkload, Length, Requests, draw
from speclab.replications.chapter10.presets import REFERENCE_RATE, WORKLOADS
from speclab.replications.chapter10.speculation_presets import preset_fleet

TALK = FleetWorkload(
    name="talk", new_input=Length(mean=200, cv=1.0, most=900), output=Length(mean=40, cv=1.0, most=200), turns=2,
    think_s=0.4, ttft_slo_s=0.1, tpot_slo_s=0.01,
)  # fmt: skip
FLEET = Fleet(instances=2, speculation=AssumedSpeculation(drafter="mtp-head-8b", k=3, alpha=0.7))


def test_gaps_between_tokens_are_those_of_the_tokens_one_by_one() -> None:
    requests = draw(TALK, 8.0, seed=3, sessions=50)
    rows, _ = plain_serving.serve(FLEET, requests)
    judged = sorted(rows, key=lambda row: row.arrival_s)[10:]  # 100 requests, the first tenth is not judged
    found = metrics.latencies(serve(FLEET, requests))
    np.testing.assert_allclose(
        np.sort(found.itl), np.sort(np.concatenate([np.diff(row.token_s) for row in judged])), atol=1e-12
    )
    assert found.ttft.tolist() == [row.first_s - row.arrival_s for row in judged]
    several = [row for row in judged if row.output > 1]
    assert found.tpot.tolist() == [(row.finish_s - row.first_s) / (row.output - 1) for row in several]


def _served(first_s: list[float], finish_s: list[float]) -> Served:
    """Ten requests of 11 tokens, one a second."""
    count = len(first_s)
    arrival_s = np.arange(count, dtype=float)
    requests = Requests(np.full(count, 100), np.full(count, 11), arrival_s, np.zeros(count))
    none = np.zeros(count, dtype=np.int64)
    return Served(requests, arrival_s, arrival_s + first_s, arrival_s + finish_s, none, none, none + 10, (Passes(),))


def test_attainment_by_hand() -> None:
    # SLOs: 0.1 s and 10 ms a token. The first request is not judged; of the other nine one is late, one is slow,
    # one is both, one was never served
    late, slow = 0.2, 0.3
    served = _served([0.5, late, 0.1, late] + [0.1] * 6, [5, late + 0.05, slow, 0.9, np.nan] + [0.15] * 5)
    assert metrics.attainment(served, TALK) == pytest.approx(5 / 9)
    assert metrics.attainment(served, TALK, multiple=2) == pytest.approx(7 / 9)


def test_throughput_by_hand() -> None:
    served = _served([0.1] * 10, [0.2] * 10)
    # judged: arrivals at 1..9 s, so 8 requests of 11 tokens in 8 s; the whole run takes 9.2 s
    assert metrics.throughput(served) == pytest.approx((1.0, 11.0))
    assert metrics.throughput(served, saturated=True) == pytest.approx((10 / 9.2, 110 / 9.2))


def test_price_and_energy_by_hand() -> None:
    served = _served([0.1] * 10, [0.2] * 10)
    served.by_instance[0].energy_j = 88.0
    found = metrics.at_capacity(served, Fleet(gpus=2, instances=2))
    assert found["goodput_per_gpu"] == pytest.approx(1 / 4)
    assert found["usd_per_mtok"] == pytest.approx(3.0 * 4 / 3600 / 11 * 1e6)
    assert found["j_per_tok"] == pytest.approx((4 * 100 * 9.2 + 88) / 110)
    assert np.isnan(metrics.at_capacity(served, Fleet(device="a100-sxm"))["usd_per_mtok"])


def test_anchors_of_the_source_in_full_precision() -> None:
    fleet = preset_fleet("h100-sxm", "baseline", "chat")
    served = LoadTest(fleet, WORKLOADS["chat"]).run(REFERENCE_RATE["chat"])
    found = metrics.at_load(served)
    assert found["ttft_p50_s"] == pytest.approx(0.11570662657857156, rel=1e-9)
    assert found["tpot_p99_s"] == pytest.approx(0.03330336946515568, rel=1e-9)
    assert found["itl_p50_s"] == pytest.approx(0.01952243687162536, rel=1e-9)
    assert metrics.total_energy(served, fleet) == pytest.approx(1045942.8354705073, rel=1e-9)
