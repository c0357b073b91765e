"""One kernel for the notebooks of one worker: starting it and its imports takes longer than most notebooks do.

Between two notebooks it forgets every name and counts its cells from 1 again; the state of modules stays. ``make test``
checks that a notebook gives the same in a kernel of its own.
"""

from __future__ import annotations

import asyncio

from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync


class WarmKernel:
    """A kernel that outlives the notebooks that are run in it."""

    def __init__(self) -> None:
        self._manager: AsyncKernelManager | None = None

    def manager(self) -> AsyncKernelManager:
        """Return the manager to hand to the next notebook; its kernel is started by the first one."""
        if self._manager is None:
            self._manager = AsyncKernelManager(kernel_name="python3")
        elif self._manager.has_kernel:
            asyncio.run(_forget(self._manager))
        return self._manager

    def stop(self) -> None:
        """Stop the kernel, if one is running; the next notebook gets a new one."""
        if self._manager is not None and self._manager.has_kernel:
            run_sync(self._manager.shutdown_kernel)(now=True)
        self._manager = None


async def _forget(manager: AsyncKernelManager) -> None:
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=60)
        # silent, so that the reset itself is not counted
        await client.execute_interactive("get_ipython().reset(new_session=True)", silent=True, timeout=60)
    finally:
        client.stop_channels()
