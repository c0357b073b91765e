"""A browser for the tests of this folder that drive one."""

from __future__ import annotations

from collections.abc import Iterator

import chromium
import pytest


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Browser]:
    """One Chromium for the tests of a file."""
    if chromium.found() is None:
        pytest.skip(f"no Chromium here (looked for {', '.join(chromium.NAMES)}): apt install chromium")
    with chromium.running() as started:
        yield started
