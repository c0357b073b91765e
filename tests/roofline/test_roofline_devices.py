from __future__ import annotations

import dataclasses

import pytest

from speclab.errors import UserError
from speclab.roofline.devices import DEVICES, device
from speclab.roofline.recognise import recognised


@pytest.mark.parametrize(
    ("slug", "ridge"),
    [("h100-sxm", 203.0), ("a100-sxm", 105.2), ("h200-sxm", 141.7), ("b200", 193.4)],
)
def test_ridge_points_are_those_of_the_source(slug: str, ridge: float) -> None:
    assert device(slug).ridge_flop_per_byte == pytest.approx(ridge, abs=0.05)


@pytest.mark.parametrize(("slug", "watts"), [("h100-sxm", 600), ("h200-sxm", 600), ("a100-sxm", 340), ("b200", 860)])
def test_power_left_for_work(slug: str, watts: float) -> None:
    assert device(slug).dynamic_power_w == watts


def test_small_a100_differs_in_memory_only() -> None:
    large, small = device("a100-sxm"), device("a100-40gb")
    assert (small.peak_byte_per_s, small.memory_bytes) == (1.555e12, 40e9)
    assert dataclasses.replace(
        small, slug=large.slug, name=large.name, peak_byte_per_s=large.peak_byte_per_s, memory_bytes=large.memory_bytes
    ) == large  # fmt: skip


def test_unknown_device_lists_the_known() -> None:
    with pytest.raises(UserError, match="unknown device 'h1000'") as error:
        device("h1000")
    assert all(slug in str(error.value) for slug in DEVICES)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("measured (vLLM 0.30.0, NVIDIA H200)", "h200-sxm"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("simulated (h100-sxm)", "h100-sxm"),
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA H100 NVL", None),
        ("NVIDIA H100 96GB HBM3", None),
        ("measured (vLLM 0.30.0, AMD EPYC, 2 cores)", None),
    ],
)
def test_a_device_is_recognised_by_its_drivers_name(name: str, slug: str | None) -> None:
    assert recognised(name) == (device(slug) if slug else None)
