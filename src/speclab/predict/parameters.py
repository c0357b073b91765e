"""The physical parameters of a step: what each means, its unit, and between which values it is plausible."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pydantic import Field

from speclab.config import Frozen
from speclab.roofline.devices import Device

PUBLISHED_SHARES = "Liu et al., arXiv:2601.11580, Figure 4"


class Parameters(Frozen):
    """What a step costs beside the shapes of its models; `MEANINGS` says what each is.

    Attributes
    ----------
    overhead_s : float
        Time of every step whatever it holds, s.
    byte_per_s, flop_per_s : float
        Rates that passes reach, byte/s and FLOP/s.
    smoothing : float
        Exponent that smooths the roofline: a pass takes the `smoothing`-norm of its memory and compute times. 1 adds
        them, a large number takes the longer one.
    row_s, token_s, position_s : float
        Time of the host for each row of a step, for each token that leaves it, and for each position whose logits are
        sampled, s.
    launch_s : float
        Time of one draft position beside its pass, s.
    lookup_s : float
        Time to search one row's text for an n-gram, s.
    lookup_hit : float
        Share of n-gram's drafts whose first token is right.
    """

    overhead_s: float = Field(gt=0)
    byte_per_s: float = Field(gt=0)
    flop_per_s: float = Field(gt=0)
    smoothing: float = Field(default=3.0, ge=1)
    row_s: float = Field(default=0.0, ge=0)
    token_s: float = Field(default=0.0, ge=0)
    position_s: float = Field(default=0.0, ge=0)
    launch_s: float = Field(default=0.0, ge=0)
    lookup_s: float = Field(default=0.0, ge=0)
    lookup_hit: float = Field(default=0.5, gt=0, le=1)

    def replaced(self, **values: float) -> Parameters:
        """Return these parameters with others in some places, validated."""
        return Parameters.model_validate(self.model_dump() | values)

    def on(self, device: Device, fitted_on: Device) -> Parameters:
        """Return these parameters for another device: the same shares of its data sheet's rates, the same host."""
        return self.replaced(
            byte_per_s=self.byte_per_s * device.peak_byte_per_s / fitted_on.peak_byte_per_s,
            flop_per_s=self.flop_per_s * device.peak_flop_per_s / fitted_on.peak_flop_per_s,
        )


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a parameter is.

    Attributes
    ----------
    unit : str
        As in `Parameters`.
    says : str
        One line for the table of the book.
    low, high : float
        Plausible range of a server with one large GPU; a held value counts as uncertain by half of it to either side.
    source : str
        Where the range comes from.
    """

    unit: str
    says: str
    low: float
    high: float
    source: str

    def spread(self, value: float) -> float:
        """Return the standard deviation of a held value's logarithm: the range is taken as two to either side."""
        return math.log(self.high / self.low) / 4 if value > 0 else 0.0


MEANINGS: dict[str, Meaning] = {
    "overhead_s": Meaning(
        "s", "scheduler, launches and sampling of every step", 0.5e-3, 1.5e-3, f"{PUBLISHED_SHARES}: 'other' at batch 1"
    ),
    "byte_per_s": Meaning(
        "byte/s",
        "bandwidth that passes reach, weights and KV cache",
        2.3e12,
        3.2e12,
        "70 to 95% of an H100's data sheet",
    ),
    "flop_per_s": Meaning(
        "FLOP/s", "arithmetic rate that passes reach", 4.0e14, 8.0e14, "40 to 80% of an H100's data sheet"
    ),
    "smoothing": Meaning(
        "1",
        "roofline smoothing exponent: how sharply memory-bound turns into compute-bound",
        2.0,
        4.5,
        "arXiv:2601.11580 does not tell 2 from 3.5, and speaks against more",
    ),
    "row_s": Meaning("s", "host, for each row of a step", 0.2e-6, 10e-6, "assumed"),
    "token_s": Meaning(
        "s",
        "host, for each token that leaves a step",
        0.7e-6,
        6e-6,
        f"{PUBLISHED_SHARES}: growth of 'other' to batch 512",
    ),
    "position_s": Meaning(
        "s",
        "sampling over the vocabulary, for each position",
        0.2e-6,
        1.3e-6,
        "128,256 logits of 10 to 16 byte, read or written",
    ),
    "launch_s": Meaning("s", "one draft position beside its pass", 0.02e-3, 1.5e-3, "assumed"),
    "lookup_s": Meaning(
        "s",
        "n-gram's search of one row's text",
        0.3e-6,
        3e-6,
        f"{PUBLISHED_SHARES}: drafting of n-gram at batch 64 to 512",
    ),
    "lookup_hit": Meaning("1", "share of n-gram's drafts whose first token is right", 0.2, 0.8, "assumed"),
}
"""What each parameter is, by name, in the order of the book's table."""

H100_8B = Parameters(
    overhead_s=1.0e-3,
    byte_per_s=0.80 * 3.35e12,
    flop_per_s=0.55 * 989e12,
    smoothing=3.0,
    token_s=2.0e-6,
    position_s=0.5e-6,
    launch_s=0.3e-3,
    lookup_s=1.0e-6,
)
"""Where fits on an H100 begin, and what they hold.

The two rates are those of `roofline.devices`. Overhead: 'other' is 13.9% of a step at batch 1 in arXiv:2601.11580
(Figure 4), of about 7.1 ms on that version of vLLM (vllm-project/vllm#20780). A token that leaves: 'other' grows to
7.7% of the step at batch 512. The smoothing exponent was chosen, not fitted; the
book shows what other values give.
"""

CPU_135M = Parameters(
    overhead_s=30e-3,
    byte_per_s=20e9,
    flop_per_s=4e11,
    smoothing=3.0,
    position_s=0.1e-3,
    launch_s=0.3e-3,
)
"""Where fits of a 135M model on two CPU cores begin, and what they hold.

Assumed: two memory channels' worth of bandwidth, and sampling that reads and writes 49,152 logits about five times at
half of it. A launch is the host's Python, so it is the H100's. What leaves a step costs the host too little beside a
pass to be seen here.
"""
