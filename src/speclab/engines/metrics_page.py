"""The page on which a server shows its counters, wherever it lies."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlsplit

from speclab.engines import completion
from speclab.engines.transport import Arrivals, Transport


class MetricsPage:
    """A server's ``/metrics``; where it has moved to on the same server is followed and remembered.

    Parameters
    ----------
    root : str
        Address that the API's ``/v1`` hangs on.
    authorized_by : str
        From `speclab.engines.completion.authorization`.
    """

    def __init__(self, root: str, authorized_by: str):
        self._root = root
        self._authorized_by = authorized_by
        self._path = "/metrics"

    async def text(self, transport: Transport) -> str:
        """Return the page as it is now; empty where there is none.

        Raises
        ------
        NoConnection, Lost, NotHttp, OSError
            As of `Transport.exchange` and `Arrivals.body`.
        """
        above = urlsplit(self._root).path
        for _ in range(2):
            arrivals = Arrivals()
            await transport.exchange(completion.page(self._root, self._path, self._authorized_by), arrivals)
            head = arrivals.head
            assert head is not None
            if head.status == HTTPStatus.OK:
                return arrivals.body().content.decode(errors="replace")
            location = urlsplit(head.headers.get("location", "")).path
            if not 300 <= head.status < 400 or not location.startswith(f"{above}/"):
                break
            self._path = location.removeprefix(above)
        return ""
