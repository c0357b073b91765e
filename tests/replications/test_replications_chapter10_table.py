from __future__ import annotations

import pandas as pd
import pytest

from speclab.errors import UserError
from speclab.replications.chapter10 import cut_offs, device_table


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return device_table()


@pytest.mark.parametrize(
    ("device", "batch", "plain_ms", "speculative_ms", "bound", "speed_up", "plain_s", "speculative_s"),
    # inference-tradeoffs-explained, chapter 10, context 512; the last two columns in full precision
    [
        ("h100-sxm", 1, "6.126", "3.076", "memory", "1.99", 0.006125583952238806, 0.003076401308106134),
        ("h100-sxm", 32, "0.216", "0.107", "memory", "2.02", 2.1573294029850746e-4, 1.0669870426784359e-4),
        ("h100-sxm", 128, "0.073", "0.053", "power", "1.37", 7.275267388059702e-5, 5.311684230523942e-5),
        ("h100-sxm", 512, "0.037", "0.048", "compute", "0.77", 3.7007607276119405e-5, 4.810471016387812e-5),
        ("a100-sxm", 1, "9.743", "4.927", "memory", "1.98", 0.009742621991172143, 0.004927494032183709),
        ("a100-sxm", 128, "0.117", "0.153", "compute", "0.76", 1.1701832454634623e-4, 1.530142878280534e-4),
    ],
)
def test_the_six_rows_of_the_page(
    table: pd.DataFrame, device: str, batch: int, plain_ms: str, speculative_ms: str, bound: str, speed_up: str,
    plain_s: float, speculative_s: float,
) -> None:  # fmt: skip
    row = table.query("device == @device and batch == @batch and context == 512").iloc[0]
    shown = (f"{row.plain_ms_per_token:.3f}", f"{row.speculative_ms_per_token:.3f}", f"{row.speed_up:.2f}")
    assert (*shown, row.verify_bound, row.plain_bound) == (plain_ms, speculative_ms, speed_up, bound, "memory")
    assert row.plain_ms_per_token / 1e3 == pytest.approx(plain_s, rel=1e-12)
    assert row.speculative_ms_per_token / 1e3 == pytest.approx(speculative_s, rel=1e-12)


def test_sixteen_rows_of_which_two_fit_no_one_gpu(table: pd.DataFrame) -> None:
    assert len(table) == 16
    assert set(table.kv_room_tokens) == {410_628}
    too_much = table[~table.fits_memory]
    assert too_much[["context", "batch", "kv_tokens"]].drop_duplicates().to_numpy().tolist() == [[2048, 512, 1_048_576]]
    assert (too_much.speed_up > 1).all()  # "still wins", of a batch that is not there


def test_a_step_is_its_parts(table: pd.DataFrame) -> None:
    row = table.query("device == 'h100-sxm' and batch == 128 and context == 512").iloc[0]
    assert (f"{row.plain_ms:.3f}", f"{row.verify_ms:.3f}") == ("9.312", "15.255")
    tokens = row.batch * 2.533
    assert row.speculative_ms_per_token == pytest.approx((row.verify_ms + row.drafting_ms) / tokens)
    # 15 GB and 128 rows of 513 tokens read at 60 pJ a byte, 1 pJ an operation, and 100 W at rest
    size = 2 * 7_504_658_432 + 128 * 2 * 4096 + 128 * 513 * 131_072
    flops = 2 * 7_504_658_432 * 128 + 4 * 32 * 4096 * 128 * 513
    assert row.plain_j_per_token * 128 == pytest.approx(size * 60e-12 + flops * 1e-12 + 100 * row.plain_ms / 1e3)
    assert row.speculative_j_per_token > row.plain_j_per_token  # 1.37 times as fast, and yet it takes more energy
    assert table.speculative_j_per_token[0] < table.plain_j_per_token[0]
    assert row.plain_flop_per_byte < row.ridge_flop_per_byte < row.verify_flop_per_byte


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"devices": ["h1000"]}, "unknown device 'h1000'"),
        ({"k": 0}, "k: found 0"),
        ({"alpha": 1.5}, "alpha: found 1.5"),
        ({"gpus": 5}, "gpus that divide both, not 5"),
        ({"batches": [201], "contexts": [2048], "must_fit": True}, "at 2,048 tokens each, 200 rows fit"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as error:
        device_table(**options)
    assert message in str(error.value)


def test_where_speculation_stops_paying() -> None:
    found = cut_offs(["a100-sxm"], [512, 2048])
    assert found.rows_that_fit.tolist() == [802, 200]
    assert found.break_even_rows.isna().tolist() == [False, True]
    rows = int(found.break_even_rows[0])
    either_side = device_table(["a100-sxm"], [512], [rows - 1, rows]).speed_up
    assert either_side[0] > 1 >= either_side[1]
