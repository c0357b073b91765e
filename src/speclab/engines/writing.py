"""One whole answer with its tokens and how sure the model was of each: for comparing texts, not for timing."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from speclab.config import Frozen
from speclab.engines.secrets import masked
from speclab.engines.stream import encodable, message, shown
from speclab.lab import Sampling
from speclab.prompts.base import Prompt

if TYPE_CHECKING:
    from openai import AsyncOpenAI

WITHIN_S = 300.0


class TextAnswer(Frozen):
    """One answer, with what tells where two of them part."""

    prompt_id: str
    text: str | None = None
    finish_reason: str | None = None
    error: str | None = None
    token_ids: tuple[int, ...] | None = None
    """None where the server does not give them."""
    gaps: tuple[float, ...] | None = None
    """The difference between the two highest logits at each token, nats."""


async def write(
    client: AsyncOpenAI, model: str, prompt: Prompt, sampling: Sampling, secrets: Collection[str] = ()
) -> TextAnswer:
    """Return a server's answer to one prompt.

    ``return_token_ids`` is vLLM's own key. The two highest log-probabilities are asked for at each token; their
    difference is that of the logits. A request that fails says so in ``error``; `secrets` are kept out of it and of the
    text.
    """
    import httpx2  # both take a second to import, and whoever reads what was written needs neither
    from openai import APIConnectionError, APIStatusError

    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": prompt.text}],
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        "logprobs": True,
        "top_logprobs": 2,
        "return_token_ids": True,
    }
    if sampling.ignore_eos:
        body["ignore_eos"] = True
    try:
        response = await client.post(
            "/chat/completions", body=body, cast_to=httpx2.Response, options={"timeout": WITHIN_S}
        )
        answer = parsed(prompt.id, response.json())
        return answer.model_copy(update={"text": masked(answer.text, secrets)}) if answer.text else answer
    except APIStatusError as error:
        said = f"HTTP {error.status_code}: {message(error.body) if error.body else 'no body'}"
    except APIConnectionError as error:
        said = f"no answer ({type(error.__cause__).__name__})"
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        said = f"not a chat completion ({type(error).__name__})"
    return TextAnswer(prompt_id=prompt.id, error=shown(said, secrets))


def parsed(prompt_id: str, completion: dict[str, Any]) -> TextAnswer:
    """Return what a chat completion says."""
    choice = completion["choices"][0]
    steps = (choice.get("logprobs") or {}).get("content")
    ids = choice.get("token_ids")
    text = choice["message"]["content"]
    return TextAnswer(
        prompt_id=prompt_id,
        text=encodable(text) if isinstance(text, str) else text,
        finish_reason=choice["finish_reason"],
        token_ids=None if ids is None else tuple(ids),
        gaps=None if steps is None else tuple(_gap(step) for step in steps),
    )


def _gap(step: dict[str, Any]) -> float:
    best, second = sorted((entry["logprob"] for entry in step["top_logprobs"]), reverse=True)[:2]
    return round(float(best - second), 6)
