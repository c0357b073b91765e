"""Links between GPUs, and the ring all-reduce that tensor parallelism pays on them.

Bandwidths are the vendors' (one direction); latency per hop and energy per bit are those of the public simulator
*Disaggregated_Inference_Sim*. Nothing here was measured.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of a link between two GPUs.

    Attributes
    ----------
    name : str
        How the book names it.
    byte_per_s : float
        Bandwidth, byte/s.
    hop_s : float
        Latency of one hop, s.
    pj_per_bit : float
        Energy of one bit, pJ. Illustrative.
    """

    name: str
    byte_per_s: float
    hop_s: float
    pj_per_bit: float

    def all_reduce_s(self, gpus: int, size: float) -> float:
        """Return the time of one ring all-reduce of `size` bytes over `gpus` GPUs, s."""
        return 2 * (gpus - 1) / gpus * size / self.byte_per_s + 2 * (gpus - 1) * self.hop_s

    def all_reduce_j(self, gpus: int, size: float) -> float:
        """Return the energy of one ring all-reduce of `size` bytes over `gpus` GPUs, J."""
        return 2 * (gpus - 1) * size * 8 * self.pj_per_bit * 1e-12


NVLINK3 = Link("NVLink 3", 300e9, 5e-6, 5)
NVLINK4 = Link("NVLink 4", 450e9, 5e-6, 5)
NVLINK5 = Link("NVLink 5", 900e9, 5e-6, 5)
INFINIBAND_NDR = Link("InfiniBand NDR", 50e9, 10e-6, 15)
PCIE5 = Link("PCIe 5", 64e9, 5e-6, 6)
PCIE4 = Link("PCIe 4", 32e9, 5e-6, 6)
ETHERNET_100G = Link("100 Gbit Ethernet", 12.5e9, 20e-6, 15)
ETHERNET_25G = Link("25 Gbit Ethernet", 3.125e9, 20e-6, 15)
