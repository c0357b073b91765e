"""Which model is timed: a shape that the roofline model knows, or the configuration in a model's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from speclab.errors import UserError
from speclab.predict.query import SHORT_MODELS
from speclab.probe.needs import needed
from speclab.roofline.transformers import TRANSFORMERS, Transformer


def shape(name: str) -> Transformer:
    """Return a shape by its name, or that of the model in a folder.

    Parameters
    ----------
    name : str
        A slug of `speclab.roofline.transformers`, or a folder with a ``config.json`` of a Llama or of an EAGLE-3 head.

    Raises
    ------
    UserError
        It is neither, or the model is built differently from a `Transformer`.
    """
    known = TRANSFORMERS.get(name) or TRANSFORMERS.get(SHORT_MODELS.get(name, ""))
    if known is not None:
        return known
    folder = Path(name)
    if (folder / "config.json").is_file():
        return _of_folder(folder)
    names = ", ".join(sorted({*TRANSFORMERS, *SHORT_MODELS}))
    raise UserError(f"unknown shape {name!r}", f"the known shapes: {names}; or give a folder with a config.json")


def from_config(slug: str, config: Any) -> Transformer:
    """Return the shape that a configuration describes.

    Parameters
    ----------
    slug : str
        What to call it.
    config : transformers.LlamaConfig
        The configuration; one of an EAGLE-3 head names its architecture so and has a ``draft_vocab_size``.

    Raises
    ------
    ValueError
        Its heads do not divide its width evenly into equal parts, or its projections have a bias.
    """
    head_width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if head_width * config.num_attention_heads != config.hidden_size:
        raise ValueError(f"{config.num_attention_heads} heads of {head_width} are not {config.hidden_size} wide")
    if getattr(config, "attention_bias", False) or getattr(config, "mlp_bias", False):
        raise ValueError("its projections have a bias")
    is_head = any("Eagle3" in name for name in config.architectures or ())
    return Transformer(
        slug,
        slug,
        config.num_hidden_layers,
        config.hidden_size,
        config.num_attention_heads,
        config.num_key_value_heads,
        config.intermediate_size,
        config.vocab_size,
        output_vocabulary=getattr(config, "draft_vocab_size", None) if is_head else None,
        attention_inputs=2 if is_head else 1,
        fused_states=3 if is_head else 0,
        own_embedding=not is_head,
    )


def _of_folder(folder: Path) -> Transformer:
    transformers = needed("transformers")
    file = folder / "config.json"
    try:
        content, _ = transformers.LlamaConfig.get_config_dict(folder, local_files_only=True)
        if content.get("model_type") != "llama":
            raise ValueError(f"model_type is {content.get('model_type')!r}")
        return from_config(folder.resolve().name, transformers.LlamaConfig.from_dict(content))
    except (OSError, TypeError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise UserError(f"not a shape that can be timed ({problem})", "give one of a Llama", file=file) from None
