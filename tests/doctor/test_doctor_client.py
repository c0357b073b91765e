from __future__ import annotations

from doctor_cases import level, only

from speclab import lab as labs
from speclab.doctor import client
from speclab.doctor.base import Case, Machine


def a_case(events_per_s: float) -> Case:
    lab = labs.load("lab09")
    arm = lab.arm("baseline")
    return Case(lab, arm, arm, Machine(clean_rate_per_s=events_per_s))


def test_the_expected_step_is_the_weights_alone_or_longer() -> None:
    # 16.06 GB of weights less the embedding's 1.05 GB, at 0.8 of 3.35 TB/s, are 5.6 ms
    expected_ms = client.expected_step_ms(a_case(1))
    assert expected_ms is not None
    assert 5.6 < expected_ms < 20


def test_g2_a_client_whose_clean_rate_is_below_the_labs_misleads() -> None:
    expected_ms = client.expected_step_ms(a_case(1))
    assert expected_ms is not None
    needed = 1000 * 256 / expected_ms
    assert level(client.capacity(a_case(needed * 0.99))) == "will mislead"
    assert level(client.capacity(a_case(needed * 1.01))) == "fine"


def test_what_was_not_tried_or_cannot_be_expected_is_not_known(case) -> None:
    assert level(client.capacity(case())) == "not known here"
    tried = case(clean_rate_per_s=1000.0)
    found = only(client.capacity(tried))
    assert found.level == "not known here"
    assert "up to 1,000 events/s" in found.found


def test_an_endpoint_needs_an_address_and_hides_its_flags(case) -> None:
    assert level(client.endpoint(case())) == "will fail"
    found = only(client.endpoint(case(base_url="http://host:8000/v1")))
    assert found.level == "not known here"
    assert "OPENAI_API_KEY" in found.remedy
    assert "secret" not in only(client.endpoint(case(base_url="http://me:secret@host/v1"))).found
    broken = only(client.endpoint(case(base_url="http://[::1")))
    assert (broken.level, broken.found) == ("will fail", "found 'http://[::1', which is no address of a server")
    assert "OPENAI_API_KEY" not in only(client.endpoint(case(base_url="http://h/v1", has_api_key=True))).remedy
