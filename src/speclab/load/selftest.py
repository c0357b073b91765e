"""The clean rate of this client: the most events a second of which it sees what was sent.

Beyond it a cell would show this client and not the server.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import cache

from speclab.cache import keys
from speclab.cache.code import package_source
from speclab.cache.store import keep, kept
from speclab.config import Frozen
from speclab.engines.device import cpu_slug
from speclab.load.fidelity import Trial, script_of, stub, trial

KEPT = "clean-rate"
GAP_MS = 10.0
STREAMS = (4, 16, 64, 256, 512)
"""Loads that are tried until one is not clean; 512 streams are beyond what one stub can send on most machines."""
BISECTIONS = 2
MOST_TRIALS = 8
"""No further halving after so many: together they take less than half a minute."""
TRIES = 2
"""A load that is not clean is tried again: on a machine that does other things too, one trial may be disturbed."""


class CleanRate(Frozen):
    """What the self-test found."""

    clean_rate_per_s: float | None
    """The highest rate of events that was clean, 1/s; 0 where none was, None where the machine was too busy to tell."""
    tried: tuple[Trial, ...]
    """In the order in which they were tried."""


def clean_rate(progress: Callable[[Trial], None] | None = None) -> CleanRate:
    """Measure the clean rate, in about half a minute.

    Parameters
    ----------
    progress : callable, optional
        Told each trial as it ends.

    Raises
    ------
    UserError
        The stub did not start, or a request to it failed.
    """
    with stub(script_of(GAP_MS)) as url:

        def attempt(streams: int) -> Trial:
            made = trial(url, streams, GAP_MS)
            if progress is not None:
                progress(made)
            return made

        return search(attempt)


def search(attempt: Callable[[int], Trial]) -> CleanRate:
    """Return the highest load that is clean: steps up to the first that is not, then halves between the two.

    Parameters
    ----------
    attempt : callable
        Tries a number of streams.
    """
    tried: list[Trial] = []

    def is_clean(streams: int) -> bool:
        for _ in range(TRIES):
            tried.append(attempt(streams))
            if tried[-1].is_clean:
                return True
        return False

    clean, beyond = 0, None
    for streams in STREAMS:
        if not is_clean(streams):
            beyond = streams
            break
        clean = streams
    for _ in range(BISECTIONS if clean and beyond is not None else 0):
        assert beyond is not None
        between = round((clean * beyond) ** 0.5)
        if between in (clean, beyond) or len(tried) >= MOST_TRIALS:
            break
        if is_clean(between):
            clean = between
        else:
            beyond = between
    cannot_tell = not clean and any(made.is_disturbed for made in tried)
    rate = next((made.rate_per_s for made in tried if made.is_clean and made.streams == clean), 0.0)
    return CleanRate(clean_rate_per_s=None if cannot_tell else rate, tried=tuple(tried))


def keep_clean_rate(measure: Callable[[], CleanRate] = clean_rate) -> CleanRate:
    """Measure the clean rate anew, and keep it for `kept_clean_rate`."""
    measured = measure()
    if measured.clean_rate_per_s is not None:
        keep(KEPT, key(), measured.clean_rate_per_s)
    return measured


class _TooBusyError(Exception):
    """The machine has too much else to do; what it shows now is not worth keeping."""


@cache
def kept_clean_rate(measure: Callable[[], CleanRate] = clean_rate) -> float | None:
    """Return the clean rate of this client on this machine, 1/s: measured once, and kept until the code changes.

    None where the machine was too busy to tell.
    """

    def measured() -> float:
        rate = measure().clean_rate_per_s
        if rate is None:
            raise _TooBusyError
        return rate

    try:
        return kept(KEPT, key(), measured)
    except _TooBusyError:
        return None


def key() -> str:
    """Return a hash of what decides the clean rate: this machine, and the client's and the stub's code."""
    machine = keys.of_values(platform.node(), cpu_slug(), platform.python_version())
    code = package_source().sha256("speclab.load.selftest.clean_rate", "speclab.engines.mock.serve")
    return keys.joined(machine, code)
