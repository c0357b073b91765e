"""An OpenAI-compatible server that is already up.

The load's completions go over a transport of their own (`speclab.engines.transport`), which keeps time; everything that
is not timed (the list of models, single answers to compare texts, counters) goes through the ``openai`` client and the
client below it.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, Self

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient

from speclab.engines import address, completion, counters, secrets, stream, writing
from speclab.engines.base import Answer, EngineFailure, EngineIdentity, Opening, Reading
from speclab.engines.http1 import NotHttp
from speclab.engines.metrics_page import MetricsPage
from speclab.engines.silence import Flight, Flights
from speclab.engines.stream import shown
from speclab.engines.transport import CONNECT_WITHIN_S, Arrivals, Lost, NoConnection, Transport
from speclab.engines.writing import TextAnswer
from speclab.lab import Arm, EngineName, Lab, Sampling
from speclab.prompts.base import Prompt, PromptSet

HUNG_AFTER_S = 20.0
"""A server that gives no token to any request in flight for so long is hung."""
METRICS_WITHIN_S = 5.0
MOST_UNREAD_BYTES = 2**30
"""So much of what came waits for the cell's end; beyond it answers are read as they end, at the cost of the others."""
FEW_PIECES = 8
"""An answer of so few pieces is read at once: it costs nothing, and may be an error that a slot has to know of."""

NO_KEY = "none"

_PROBE = Prompt("probe", "probe", "Say hello.")


class NotServing(Exception):  # noqa: N818 - a state of a server, not of this program
    """A server that did not answer a completion.

    Parameters
    ----------
    reason : str
        One line: what was found, and what would do.
    passing : bool
        Whether a server that is still starting looks like this.
    """

    def __init__(self, reason: str, *, passing: bool = False):
        self.reason, self.passing = reason, passing
        super().__init__(reason)


class Endpoint:
    """One arm, served at an address; an async context that holds the connections.

    Parameters
    ----------
    base_url : str
        Address of the API, with or without its ``/v1``. `UserError` where it is none.
    model : str
        Name of the target: a served name, or the model behind one.
    device : str
        Slug of the device that serves.
    engine : {'endpoint', 'vllm'}
        What the records call this engine.
    device_name : str, optional
        The device as a badge names it; its slug where not given.
    api_key : str
        Sent as the bearer token; never recorded.
    hung_after_s : float
        Silence, in s, after which the server counts as hung.
    why_gone : callable, optional
        Says why a server that no longer accepts connections is gone; whoever started it knows more than this client.
    log_tail : callable, optional
        Returns the end of the server's log, for a server that hangs.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        device: str,
        *,
        engine: EngineName = "endpoint",
        device_name: str | None = None,
        api_key: str = NO_KEY,
        hung_after_s: float = HUNG_AFTER_S,
        why_gone: Callable[[], Awaitable[EngineFailure]] | None = None,
        log_tail: Callable[[], str] = str,
    ):
        self._root = address.root(base_url)
        self._shown = address.identity(base_url)
        self._model = model
        self._identity = EngineIdentity(engine=engine, version="unknown server", device=device, device_name=device_name)
        self._why_gone = why_gone or self._only_gone
        self._log_tail = log_tail
        self._has_key = api_key != NO_KEY
        self._secrets = secrets.of_address(self._root) | {api_key}
        self._authorized_by = completion.authorization(self._root, api_key)
        self._http = DefaultAsyncHttpxClient(
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
            timeout=httpx2.Timeout(None, connect=CONNECT_WITHIN_S),
            trust_env=not address.is_loopback(self._root),  # no proxy between this machine and itself
        )
        self._client = AsyncOpenAI(base_url=f"{self._root}/v1", api_key=api_key, http_client=self._http, max_retries=0)
        self._transport = Transport(self._root)
        self._metrics = MetricsPage(self._root, self._authorized_by)
        self._flights = Flights(hung_after_s)
        self._patience: dict[Flight, asyncio.Timeout] = {}
        self._prepared: dict[str, bytes] = {}
        self._prepared_for: Sampling | None = None
        self._unread_bytes = 0
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._watch = asyncio.create_task(self._watch_for_silence())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
        await self._transport.close()
        await self._client.close()

    @property
    def identity(self) -> EngineIdentity:
        """What serves: engine, version (known once `probe` has passed), device."""
        return self._identity

    async def probe(self) -> None:
        """Make sure that the server serves this model and answers a completion as the load needs it.

        Raises
        ------
        NotServing
            It does not; the reason says what would do.
        EngineFailure
            It took the completion and went silent.
        """
        served = await self._served_models()
        names = {str(entry.get("root") or entry["id"]): str(entry["id"]) for entry in served}
        names |= {name: name for name in names.values()}
        if self._model not in names:
            listed = self._said(", ".join(sorted(set(names.values()))) or "no model")
            raise NotServing(
                f"the server at {self._shown} serves {listed}, not {self._model}; start it with that "
                "model, or name the served one in lab.yml (target.model)"
            )
        self._model = names[self._model]
        answer = Answer(_PROBE, start_s=asyncio.get_running_loop().time())
        await self.send(answer, Sampling(max_tokens=4))
        if answer.error is not None:
            raise NotServing(
                f"the server at {self._shown} does not answer a completion: {answer.error}",
                passing=answer.error.startswith("HTTP 503"),
            )
        self._identity = self._identity.model_copy(update={"version": await self._version(served)})

    @contextmanager
    def load(self, prompts: PromptSet, sampling: Sampling) -> Iterator[None]:
        """Return a context in which these prompts are timed; see `speclab.engines.base.Engine`.

        Their requests are made before it. Inside it answers are kept unread, and the collector of cycles, which would
        stop all streams for as long as it takes to go through what they brought, does not run.
        """
        self._prepared = {
            prompt.text: self._request(prompt, sampling) for prompt in (*prompts.warm_up, *prompts.measured)
        }
        self._prepared_for, self._unread_bytes = sampling, 0
        collected = gc.isenabled()
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            yield
        finally:
            self._prepared, self._prepared_for = {}, None
            gc.unfreeze()
            if collected:
                gc.enable()

    async def send(self, answer: Answer, sampling: Sampling) -> None:
        """Send one prompt and fill its answer; see `speclab.engines.base.Engine`.

        Raises
        ------
        EngineFailure
            ``died mid-run``: the server takes no connections any more. ``hung``: it gives no token to anybody.
            ``client error``: this machine has no connection left.
        """
        loop = asyncio.get_running_loop()
        is_load = sampling is self._prepared_for
        prepared = self._prepared.get(answer.prompt.text) if is_load else None
        request = prepared or self._request(answer.prompt, sampling)
        arrivals = Arrivals()
        answer.unread = partial(stream.read, answer, arrivals, None, self._secrets)
        flight = Flight(arrivals, loop.time(), sampling.max_tokens)
        try:
            lost = await self._exchange(flight, request)
        except TimeoutError:
            lost = None
            if flight.given_up is None:
                reason = f"no token for any request in {self._flights.hung_after_s:g} s, with requests in flight"
                raise EngineFailure("hung", reason, self._log_tail()) from None
        head = arrivals.head
        whole = lost is None and flight.given_up is None
        answer.end_s = arrivals.at_s[-1] if whole else loop.time()
        if head is not None and head.status != httpx2.codes.OK:
            answer.retry_after_s = completion.retry_after_s(head)
        if lost is not None:
            answer.unread = partial(stream.read, answer, arrivals, lost, self._secrets)
        if not (is_load and whole and head is not None and head.status == httpx2.codes.OK and self._may_wait(arrivals)):
            answer.settle()
        if flight.given_up is not None:
            answer.error = flight.given_up

    async def write(self, prompt: Prompt, sampling: Sampling) -> TextAnswer:
        """Return one whole answer with its tokens and the gap between the two highest logits at each (vLLM)."""
        return await writing.write(self._client, self._model, prompt, sampling, self._secrets)

    async def read(self) -> Reading:
        """Read ``/metrics``; all None where the server has none. ``at_s`` is the middle of the round trip.

        Raises
        ------
        EngineFailure
            The server takes no connections any more.
        """
        loop = asyncio.get_running_loop()
        sent_s = loop.time()
        text = ""
        try:
            async with asyncio.timeout(METRICS_WITHIN_S):
                text = await self._metrics.text(self._transport)
        except NoConnection:
            raise await self._why_gone() from None
        except (Lost, NotHttp, OSError):  # a timeout is one
            pass
        at_s = (sent_s + loop.time()) / 2
        try:
            return counters.reading(text, at_s)
        except ValueError:  # a page that only looks like ours offers nothing
            return Reading(at_s=at_s)

    def _request(self, prompt: Prompt, sampling: Sampling) -> bytes:
        body = completion.completion(self._model, prompt.text, sampling)
        return completion.request(self._root, self._authorized_by, body)

    async def _exchange(self, flight: Flight, request: bytes) -> str | None:
        """Send a request and wait for the end of its answer; why that did not come, where the connection was lost."""
        loop = asyncio.get_running_loop()
        self._flights.take_off(flight)
        status = None
        try:
            async with asyncio.timeout(None) as self._patience[flight]:
                await self._transport.exchange(request, flight.arrivals)
            status = flight.arrivals.head.status if flight.arrivals.head is not None else None
        except NoConnection:
            raise await self._why_gone() from None
        except Lost as lost:
            return str(lost)
        except TimeoutError:
            raise
        except OSError as error:
            raise EngineFailure(
                "client error", f"this machine has no connection left ({error.strerror}): raise `ulimit -n`"
            ) from None
        finally:
            self._patience.pop(flight, None)
            self._flights.land(flight, loop.time(), status)
        return None

    def _may_wait(self, arrivals: Arrivals) -> bool:
        """Return whether an answer can stay unread until the cell has ended."""
        if len(arrivals.pieces) <= FEW_PIECES:
            return False
        self._unread_bytes += sum(map(len, arrivals.pieces))
        return self._unread_bytes <= MOST_UNREAD_BYTES

    async def _watch_for_silence(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._flights.hung_after_s / 10)
            now_s = loop.time()
            if self._flights.is_hung(now_s):
                for patience in self._patience.values():
                    patience.reschedule(now_s)
            for flight, reason in self._flights.given_up(now_s):
                flight.given_up = reason
                self._patience[flight].reschedule(now_s)

    def _said(self, text: str) -> str:
        return shown(text, self._secrets)

    async def _served_models(self) -> list[dict[str, Any]]:
        page = f"{self._shown}/v1/models"
        try:
            response = await self._client.get("/models", cast_to=httpx2.Response)
            served = response.json()["data"]
            if not isinstance(served, list) or not all(isinstance(entry["id"], str) for entry in served):
                raise TypeError
            return served
        except APIConnectionError:
            raise NotServing(
                f"no server answers at {self._shown}; start one there, or give the address of one that is up",
                passing=True,
            ) from None
        except APIStatusError as error:
            remedy = {
                401: self._who_was_refused(),
                403: self._who_was_refused(),
                404: "give the address of an OpenAI-compatible server, as in http://127.0.0.1:8000/v1",
            }.get(error.status_code, "see the server's log")
            raise NotServing(
                f"{page} answers HTTP {error.status_code}; {remedy}", passing=error.status_code == 503
            ) from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise NotServing(
                f"{page} does not answer as an OpenAI-compatible server; give the address of one"
            ) from None

    def _who_was_refused(self) -> str:
        if self._authorized_by.startswith("Basic"):
            return "the user and password in the address were refused"
        if self._has_key:
            return "the key in $OPENAI_API_KEY was refused"
        return "set OPENAI_API_KEY to its key"

    async def _version(self, served: list[dict[str, Any]]) -> str:
        with suppress(httpx2.HTTPError, ValueError, KeyError, TypeError, RecursionError):
            response = await self._http.get(f"{self._root}/version", timeout=METRICS_WITHIN_S)
            return f"vLLM {self._said(str(response.json()['version']))}"
        return self._said(str(served[0].get("owned_by") or "unknown server"))

    async def _only_gone(self) -> EngineFailure:
        return EngineFailure("died mid-run", f"the server at {self._shown} no longer accepts connections")


def opening(lab: Lab, arm: Arm, base_url: str, device: str, *, hung_after_s: float = HUNG_AFTER_S) -> Opening:
    """Return how to serve one arm by a server that is up.

    Parameters
    ----------
    lab, arm : Lab, Arm
        What the server is taken to serve. That its flags are the arm's is for its owner to see to; that it serves the
        target is checked.
    base_url : str
        Address of the API. The key is ``$OPENAI_API_KEY``, where set.
    device : str
        Slug of the device that serves, for the records' path.
    hung_after_s : float
        Silence, in s, after which the server counts as hung.

    Returns
    -------
    Opening
        Its engine raises `EngineFailure` (``will not start``) where the server does not serve the target as the load
        needs it.
    """

    @asynccontextmanager
    async def engine() -> AsyncIterator[Endpoint]:
        key = os.environ.get("OPENAI_API_KEY", "").strip() or NO_KEY
        async with Endpoint(base_url, lab.target.model, device, api_key=key, hung_after_s=hung_after_s) as endpoint:
            try:
                await endpoint.probe()
            except (NotServing, EngineFailure) as failure:
                raise EngineFailure("will not start", f"{failure.reason} (arm {arm.arm})") from None
            yield endpoint

    return Opening(loop_factory=asyncio.new_event_loop, engine=engine)
