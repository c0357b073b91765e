"""Transformers as the roofline model sees them: layers and widths, hence parameters, weight bytes and KV bytes.

Weights and KV are BF16, two bytes a value. Shapes are those of the public model configurations (Llama 3, Llama 3.2,
SmolLM2); the two MTP heads are the one-layer copies of the target that the public site *inference-tradeoffs-explained*
assumes. The EAGLE-3 head follows the paper (arXiv:2503.01840) and the public head for Llama 3.1 8B
(yuhuili/EAGLE3-LLaMA3.1-Instruct-8B); the EAGLE head is a layer of the target behind one matrix that folds embedding
and state into one vector (arXiv:2401.15077).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from speclab.errors import UserError

BYTES_PER_VALUE = 2


@dataclass(frozen=True)
class Transformer:
    """A decoder with grouped-query attention and a gated feed-forward block, or a drafter's head made of such layers.

    Attributes
    ----------
    slug, name : str
        How labs name it, and how the book does.
    layers, width, heads, kv_heads, ff_width, vocabulary : int
        Shape; `vocabulary` is the tokens that it can read.
    output_vocabulary : int, optional
        Rows of the LM head where it writes fewer tokens than it reads (EAGLE-3).
    attention_inputs : int
        Hidden vectors side by side at the input of the q, k and v projections: 2 in EAGLE-3 (embedding and state),
        else 1.
    fused_states : int
        Vectors that one matrix folds into one: three states of the target in EAGLE-3 (charged on every pass, though
        only the first draft position needs it: at most 37 us on an H100), embedding and state in EAGLE, else 0.
    own_embedding, own_head : bool
        Whether it holds these matrices itself, or borrows the target's: what it adds to memory. Reading is charged
        anyway.
    """

    slug: str
    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    ff_width: int
    vocabulary: int
    output_vocabulary: int | None = None
    attention_inputs: int = 1
    fused_states: int = 0
    own_embedding: bool = True
    own_head: bool = True

    @property
    def kv_width(self) -> int:
        """Width of the keys, and of the values, of one token in one layer."""
        return self.kv_heads * self.width // self.heads

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer: q, k, v, output, and three feed-forward matrices."""
        query_key_value = self.attention_inputs * self.width * (self.width + 2 * self.kv_width)
        return query_key_value + self.width * self.width + 3 * self.width * self.ff_width

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the input embedding."""
        return self.vocabulary * self.width

    @property
    def head_parameters(self) -> int:
        """Parameters of the LM head."""
        return (self.output_vocabulary or self.vocabulary) * self.width

    @cached_property
    def matmul_parameters(self) -> int:
        """Parameters that every pass multiplies with, hence reads: layers, LM head, and the fusing matrix."""
        return self.layers * self.layer_parameters + self.head_parameters + self.fused_states * self.width * self.width

    @cached_property
    def kv_bytes_per_token(self) -> int:
        """KV cache of one token, byte."""
        return 2 * self.layers * self.kv_width * BYTES_PER_VALUE

    @property
    def resident_bytes(self) -> int:
        """Weights that it holds in memory of its own, byte; tied matrices are counted twice."""
        parameters = self.layers * self.layer_parameters + self.fused_states * self.width * self.width
        parameters += self.embedding_parameters * self.own_embedding + self.head_parameters * self.own_head
        return parameters * BYTES_PER_VALUE


_8B = Transformer("llama-3-8b", "Llama 3 8B", 32, 4096, 32, 8, 14336, 128256)
_70B = Transformer("llama-3-70b", "Llama 3 70B", 80, 8192, 64, 8, 28672, 128256)
_135M = Transformer("smollm2-135m", "SmolLM2 135M", 30, 576, 9, 3, 1536, 49152)
_ALL = (
    _8B,
    _70B,
    Transformer("llama-3.2-1b", "Llama 3.2 1B", 16, 2048, 32, 8, 8192, 128256),
    _135M,
    replace(_135M, slug="smollm2-135m-4l", name="Four layers of SmolLM2 135M", layers=4),
    replace(_8B, slug="mtp-head-8b", name="MTP head of Llama 3 8B", layers=1, own_embedding=False, own_head=False),
    replace(_70B, slug="mtp-head-70b", name="MTP head of Llama 3 70B", layers=1, own_embedding=False, own_head=False),
    replace(
        _8B,
        slug="eagle3-head-8b",
        name="EAGLE-3 head of Llama 3.1 8B",
        layers=1,
        output_vocabulary=32000,
        attention_inputs=2,
        fused_states=3,
        own_embedding=False,
    ),
    replace(
        _135M,
        slug="eagle3-head-135m",
        name="EAGLE-3 head of SmolLM2 135M",
        layers=1,
        output_vocabulary=12_288,
        attention_inputs=2,
        fused_states=3,
        own_embedding=False,
    ),
    replace(
        _70B,
        slug="eagle3-head-70b",
        name="EAGLE-3 head for Llama 3 70B, as wide as its target",
        layers=1,
        output_vocabulary=32000,
        attention_inputs=2,
        fused_states=3,
        own_embedding=False,
    ),
    replace(
        _8B,
        slug="eagle-head-8b",
        name="EAGLE head of Llama 3.1 8B",
        layers=1,
        fused_states=2,
        own_embedding=False,
        own_head=False,
    ),
)
TRANSFORMERS = {shape.slug: shape for shape in _ALL}
"""The known shapes by slug."""


def transformer(slug: str) -> Transformer:
    """Return a shape by its slug.

    Raises
    ------
    UserError
        There is no such shape; the known ones are listed.
    """
    if slug not in TRANSFORMERS:
        raise UserError(f"unknown shape {slug!r}", f"the known shapes: {', '.join(TRANSFORMERS)}")
    return TRANSFORMERS[slug]
