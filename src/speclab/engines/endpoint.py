"""An OpenAI-compatible server that is already up.

Requests go through the ``openai`` client, but its raw response is read here: vllm#7935 found the way through that
client and a server's front end five times slower than vLLM's native one, and a pydantic model for each chunk would be
paid here. The connection pool has no limit, since a limit below the concurrency would silently cap it
(gpustack/gpustack#2324).
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient

from speclab.engines import address, counters, writing
from speclab.engines.base import Answer, EngineFailure, EngineIdentity, Opening, Reading
from speclab.engines.stream import STREAM_OPTIONS, AnswerStream, BrokenStream, message
from speclab.engines.writing import TextAnswer
from speclab.lab import Arm, EngineName, Lab, Sampling
from speclab.prompts.base import Prompt

HUNG_AFTER_S = 20.0
"""A server that gives no token to any request in flight for so long is hung."""
CONNECT_WITHIN_S = 5.0
METRICS_WITHIN_S = 5.0

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
        api_key: str = "none",
        hung_after_s: float = HUNG_AFTER_S,
        why_gone: Callable[[], Awaitable[EngineFailure]] | None = None,
        log_tail: Callable[[], str] = str,
    ):
        self._root = address.root(base_url)
        self._shown = address.identity(base_url)
        self._model = model
        self._identity = EngineIdentity(engine=engine, version="unknown server", device=device, device_name=device_name)
        self._hung_after_s = hung_after_s
        self._why_gone = why_gone or self._only_gone
        self._log_tail = log_tail
        self._http = DefaultAsyncHttpxClient(
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
            timeout=httpx2.Timeout(None, connect=CONNECT_WITHIN_S),
            trust_env=not _is_loopback(self._root),  # no proxy between this machine and itself
        )
        self._client = AsyncOpenAI(base_url=f"{self._root}/v1", api_key=api_key, http_client=self._http, max_retries=0)
        self._in_flight: set[asyncio.Timeout] = set()
        self._sign_of_life_s = 0.0
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._watch = asyncio.create_task(self._watch_for_silence())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
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
            listed = message(", ".join(sorted(set(names.values()))) or "no model")
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

    async def send(self, answer: Answer, sampling: Sampling) -> None:
        """Send one prompt and fill its answer; see `speclab.engines.base.Engine`.

        Raises
        ------
        EngineFailure
            ``died mid-run``: the server takes no connections any more. ``hung``: it gives no token to anybody.
        """
        loop = asyncio.get_running_loop()
        if not self._in_flight:
            self._sign_of_life_s = loop.time()
        stream = AnswerStream(answer)
        try:
            async with asyncio.timeout(None) as patience:
                self._in_flight.add(patience)
                try:
                    answer.error = await self._error_of(answer, stream, sampling)
                finally:
                    self._in_flight.discard(patience)
        except TimeoutError:
            raise EngineFailure(
                "hung",
                f"no token for any request in {self._hung_after_s:g} s, with requests in flight",
                self._log_tail(),
            ) from None
        finally:
            answer.text = stream.text
        answer.end_s = self._sign_of_life_s = loop.time()

    async def write(self, prompt: Prompt, sampling: Sampling) -> TextAnswer:
        """Return one whole answer with its tokens and the gap between the two highest logits at each (vLLM)."""
        return await writing.write(self._client, self._model, prompt, sampling)

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
            response = await self._http.get(f"{self._root}/metrics", timeout=METRICS_WITHIN_S)
            if response.status_code == httpx2.codes.OK:
                text = response.text
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            raise await self._why_gone() from None
        except httpx2.HTTPError:
            pass
        at_s = (sent_s + loop.time()) / 2
        try:
            return counters.reading(text, at_s)
        except ValueError:  # a page that only looks like ours offers nothing
            return Reading(at_s=at_s)

    async def _error_of(self, answer: Answer, stream: AnswerStream, sampling: Sampling) -> str | None:
        """Stream one answer; what went wrong with this request, as one line."""
        try:
            await self._stream(answer, stream, sampling)
        except BrokenStream as broken:
            return str(broken)
        except APIStatusError as error:
            return f"HTTP {error.status_code}: {message(error.body) if error.body else 'no body'}"
        except APIConnectionError as error:
            if isinstance(error.__cause__, (httpx2.ConnectError, httpx2.ConnectTimeout)):
                raise await self._why_gone() from None
            return f"the connection was lost before an answer began ({type(error.__cause__).__name__})"
        except httpx2.HTTPError as error:
            return f"the server closed the stream after {sum(answer.event_tokens)} tokens ({type(error).__name__})"
        return None

    async def _stream(self, answer: Answer, stream: AnswerStream, sampling: Sampling) -> None:
        loop = asyncio.get_running_loop()
        body: dict[str, Any] = {"stream_options": STREAM_OPTIONS}
        if sampling.ignore_eos:
            body["ignore_eos"] = True  # vLLM's own key: only sent where it is asked for
        async with self._client.chat.completions.with_streaming_response.create(
            model=self._model,
            messages=[{"role": "user", "content": answer.prompt.text}],
            temperature=sampling.temperature,
            max_tokens=sampling.max_tokens,
            seed=sampling.seed,
            stream=True,
            extra_body=body,
        ) as response:
            async for data in response.iter_bytes():
                now_s = loop.time()
                stream.feed(data, now_s)
                if answer.event_s and answer.event_s[-1] == now_s:
                    self._sign_of_life_s = now_s
        stream.finish()

    async def _watch_for_silence(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._hung_after_s / 10)
            if loop.time() - self._sign_of_life_s > self._hung_after_s:
                for patience in self._in_flight:
                    patience.reschedule(loop.time())

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
                401: "set OPENAI_API_KEY to its key",
                404: "give the address of an OpenAI-compatible server, as in http://127.0.0.1:8000/v1",
            }.get(error.status_code, "see the server's log")
            raise NotServing(
                f"{page} answers HTTP {error.status_code}; {remedy}", passing=error.status_code == 503
            ) from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise NotServing(
                f"{page} does not answer as an OpenAI-compatible server; give the address of one"
            ) from None

    async def _version(self, served: list[dict[str, Any]]) -> str:
        with suppress(httpx2.HTTPError, ValueError, KeyError, TypeError, RecursionError):
            response = await self._http.get(f"{self._root}/version", timeout=METRICS_WITHIN_S)
            return f"vLLM {message(response.json()['version'])}"
        return message(served[0].get("owned_by") or "unknown server")

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
        key = os.environ.get("OPENAI_API_KEY") or "none"
        async with Endpoint(base_url, lab.target.model, device, api_key=key, hung_after_s=hung_after_s) as endpoint:
            try:
                await endpoint.probe()
            except (NotServing, EngineFailure) as failure:
                raise EngineFailure("will not start", f"{failure.reason} (arm {arm.arm})") from None
            yield endpoint

    return Opening(loop_factory=asyncio.new_event_loop, engine=engine)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
