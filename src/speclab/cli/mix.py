"""How a traffic mix is given on the command line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speclab.errors import UserError


def shares_of(text: str, workloads: Sequence[str]) -> dict[str, float]:
    """Return a stated traffic mix (``chat=.5,completion=.3,revision=.2``) as shares by workload.

    Raises
    ------
    UserError
        A part is no ``workload=share``, a workload is unknown or named twice, or the shares do not add up to 1.
    """
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (piece.strip() for piece in part.partition("="))
        if name not in workloads:
            raise UserError(f"unknown workload {name!r}", f"this lab has {', '.join(workloads)}", key="--mix")
        if name in shares:
            raise UserError(f"{name} stands twice in {text!r}", "name each workload once", key="--mix")
        try:
            shares[name] = float(number)
        except ValueError:
            raise UserError(f"found {part.strip()!r}", f"write {name}=0.5", key="--mix") from None
        if not 0 < shares[name] <= 1:
            remedy = "give a share above 0, at most 1; leave out what there is none of"
            raise UserError(f"found {part.strip()!r}", remedy, key="--mix")
    if not np.isclose(sum(shares.values()), 1.0, atol=5e-3):
        raise UserError(f"the shares add up to {sum(shares.values()):g}", "make them add up to 1", key="--mix")
    return shares
