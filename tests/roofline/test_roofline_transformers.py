from __future__ import annotations

import pytest

from speclab.errors import UserError
from speclab.roofline.transformers import TRANSFORMERS, transformer


@pytest.mark.parametrize(
    ("slug", "per_layer", "matmul", "kv_bytes", "resident"),
    [
        # printed by the source, from 2 d^2 + 2 d kv + 3 d d_ff a layer and an untied LM head
        ("llama-3-8b", 218_103_808, 7_504_658_432, 131_072, 16_059_990_016),
        ("llama-3-70b", 855_638_016, 69_501_714_432, 327_680, 141_104_775_168),
        ("llama-3.2-1b", 60_817_408, 1_235_746_816, 32_768, 2_996_830_208),
        ("mtp-head-8b", 218_103_808, 743_440_384, 4_096, 436_207_616),
        ("mtp-head-70b", 855_638_016, 1_906_311_168, 4_096, 1_711_276_032),
        # by hand: q, k, v 8192 x 6144, o 4096^2, feed-forward 3 x 4096 x 14336; LM head 32000 x 4096; fc 12288 x 4096
        ("eagle3-head-8b", 243_269_632, 424_673_280, 4_096, 2 * 424_673_280),
        # by hand: q, k, v 16384 x 10240, o 8192^2, feed-forward 3 x 8192 x 28672; head 32000 x 8192; fc 24576 x 8192
        ("eagle3-head-70b", 939_524_096, 1_402_994_688, 4_096, 2 * 1_402_994_688),
        # by hand: 2 x 576^2 + 2 x 576 x 192 + 3 x 576 x 1536; head and embedding 49152 x 576 each
        ("smollm2-135m", 3_538_944, 134_479_872, 23_040, 2 * (134_479_872 + 28_311_552)),
        ("smollm2-135m-4l", 3_538_944, 42_467_328, 3_072, 2 * (42_467_328 + 28_311_552)),
        # by hand: q, k, v 1152 x 960, o 576^2, feed-forward 3 x 576 x 1536; LM head 12288 x 576; fc 1728 x 576
        ("eagle3-head-135m", 4_091_904, 12_165_120, 768, 2 * 12_165_120),
    ],
)
def test_parameters_and_bytes(slug: str, per_layer: int, matmul: int, kv_bytes: int, resident: int) -> None:
    shape = transformer(slug)
    assert shape.layer_parameters == per_layer
    assert shape.matmul_parameters == matmul
    assert shape.kv_bytes_per_token == kv_bytes
    assert shape.resident_bytes == resident


def test_only_the_eagle_heads_write_fewer_tokens_than_they_read() -> None:
    heads = {"eagle3-head-8b", "eagle3-head-70b", "eagle3-head-135m"}
    assert {slug for slug, shape in TRANSFORMERS.items() if shape.output_vocabulary} == heads
    assert transformer("eagle3-head-8b").head_parameters == 32_000 * 4_096


def test_unknown_shape_lists_the_known() -> None:
    with pytest.raises(UserError, match="unknown shape 'llama-4'") as error:
        transformer("llama-4")
    assert all(slug in str(error.value) for slug in TRANSFORMERS)
