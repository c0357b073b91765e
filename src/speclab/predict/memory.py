"""How many requests fit into a device's memory, and at which concurrencies a question is answered."""

from __future__ import annotations

from speclab.errors import UserError
from speclab.predict.prediction import Question
from speclab.predict.query import GRID, Query
from speclab.roofline.devices import Device
from speclab.roofline.memory import kv_capacity_tokens


def most_in_flight(machine: Device | None, question: Question) -> int | None:
    """Return how many requests of the mean context fit into memory; None where the memory is not known."""
    if machine is None:
        return None
    room = kv_capacity_tokens(machine, question.target, question.draft.shape)
    most = int(room // (question.traffic.context + question.draft.k + 1))
    if most < 1:
        raise UserError(
            f"one request of {question.traffic.context:.0f} tokens does not fit: {machine.name} has room for "
            f"{max(room, 0):,} tokens of KV cache beside the weights",
            "give a shorter context, or a device with more memory", key="--context",
        )  # fmt: skip
    return most


def concurrencies(query: Query, machine: Device | None, question: Question, most: int | None) -> tuple[int, ...]:
    """Return the concurrencies to answer for: those asked for, or `GRID` as far as memory goes.

    Raises
    ------
    UserError
        One that was asked for does not fit into memory.
    """
    if query.concurrency is None:
        return tuple(at for at in GRID if most is None or at <= most)
    highest = max(query.concurrency, default=0)
    if most is not None and machine is not None and highest > most:
        context = question.traffic.context
        raise UserError(
            f"{highest} requests of {context:.0f} tokens exceed the KV memory of {machine.name}",
            f"give at most {most} in flight, or a shorter context", key="--concurrency",
        )  # fmt: skip
    return query.concurrency
