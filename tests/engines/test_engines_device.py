from __future__ import annotations

import pytest

from speclab.engines.device import slugged


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-hbm3"),
        ("NVIDIA H200", "nvidia-h200"),
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz x8", "intel-xeon-platinum-8481c"),
        ("AMD EPYC 9B14 96-Core Processor x4", "amd-epyc-9b14"),
        ("Apple M3 x8", "apple-m3"),
        ("???", "unknown"),
    ],
)
def test_a_devices_slug_is_its_name_without_marks_and_clocks(name: str, slug: str) -> None:
    assert slugged(name) == slug
