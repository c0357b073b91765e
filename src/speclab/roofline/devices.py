"""GPUs as the roofline model sees them: peak rates, how much of them is reached, memory, power.

Peak rates, memory and board power are the vendor's (NVIDIA data sheets of A100, H100, H200 and B200; dense BF16). The
two efficiency factors, the idle power and the energy per operation and per byte are those of the public site
*inference-tradeoffs-explained* and of its simulator *Disaggregated_Inference_Sim*; their author calls everything about
power illustrative, and none of it was measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from speclab.errors import UserError
from speclab.roofline.links import NVLINK3, NVLINK4, NVLINK5, Link


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU, or `gpus` identical ones that hold one model together and act as one; see `together`.

    Attributes
    ----------
    slug, name : str
        How labs and records name it, and how the book does.
    peak_flop_per_s : float
        Dense BF16 rate of the data sheet, FLOP/s.
    peak_byte_per_s : float
        Memory bandwidth of the data sheet, byte/s.
    memory_bytes : float
        Memory of the data sheet, byte.
    tdp_w, idle_w : float
        Board power limit and power at rest, W.
    pj_per_flop, pj_per_byte : float
        Dynamic energy of one operation and of one byte from memory, pJ. Illustrative.
    compute_efficiency, memory_efficiency : float
        Share of the two peak rates that a pass reaches, whatever its shape.
    link : Link, optional
        What joins it to the next GPU of its machine.
    usd_per_hour : float, optional
        Price of one GPU. Illustrative, no quote; None where the source gives none.
    gpus : int
        How many; every rate, the memory and the power are those of one.
    """

    slug: str
    name: str
    peak_flop_per_s: float
    peak_byte_per_s: float
    memory_bytes: float
    tdp_w: float
    idle_w: float
    pj_per_flop: float
    pj_per_byte: float
    compute_efficiency: float = 0.55
    memory_efficiency: float = 0.80
    link: Link | None = None
    usd_per_hour: float | None = None
    gpus: int = 1

    @property
    def flop_per_s(self) -> float:
        """Rate that a compute-bound pass reaches at full clock on all of them, FLOP/s."""
        return self.peak_flop_per_s * self.compute_efficiency * self.gpus

    @property
    def byte_per_s(self) -> float:
        """Bandwidth that a memory-bound pass reaches on all of them, byte/s."""
        return self.peak_byte_per_s * self.memory_efficiency * self.gpus

    @property
    def ridge_flop_per_byte(self) -> float:
        """Operations per byte above which a pass is compute-bound, FLOP/byte."""
        return self.flop_per_s / self.byte_per_s

    @property
    def dynamic_power_w(self) -> float:
        """Power left for work above the power at rest on all of them, W."""
        return (self.tdp_w - self.idle_w) * self.gpus


_A100 = Device("a100-sxm", "A100 SXM 80 GB", 312e12, 2.039e12, 80e9, 400, 60, 1.6, 70, link=NVLINK3)
_H100 = Device("h100-sxm", "H100 SXM", 989e12, 3.35e12, 80e9, 700, 100, 1.0, 60, link=NVLINK4, usd_per_hour=3.00)
_ALL = (
    _H100,
    _A100,
    replace(_H100, slug="h200-sxm", name="H200 SXM", peak_byte_per_s=4.8e12, memory_bytes=141e9, usd_per_hour=3.50),
    Device("b200", "B200", 2250e12, 8e12, 180e9, 1000, 140, 0.6, 45, link=NVLINK5, usd_per_hour=5.00),
    replace(_A100, slug="a100-40gb", name="A100 40 GB", peak_byte_per_s=1.555e12, memory_bytes=40e9),
)
DEVICES = {device.slug: device for device in _ALL}
"""The known devices by slug."""


def device(slug: str) -> Device:
    """Return a device by its slug.

    Raises
    ------
    UserError
        There is no such device; the known ones are listed.
    """
    if slug not in DEVICES:
        raise UserError(f"unknown device {slug!r}", f"the known devices: {', '.join(DEVICES)}")
    return DEVICES[slug]


def together(device: Device, gpus: int) -> Device:
    """Return `gpus` of a device as one: tensor parallelism inside one instance. All-reduces come on top of it.

    Raises
    ------
    UserError
        Fewer than one GPU, or several without a link.
    """
    if gpus < 1:
        raise UserError(f"found {gpus} GPUs", "give 1 or more", key="gpus")
    if gpus > 1 and device.link is None:
        raise UserError(f"{device.slug} has no link to a second GPU", "give 1", key="gpus")
    return replace(device, gpus=gpus)
