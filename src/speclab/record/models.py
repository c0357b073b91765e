"""Which weights a lab's cells were measured with: a digest of each model, kept beside the cells.

A path says nothing about what lay there. Cells of one folder are compared with each other, so they must come from the
same weights; that is checked before a server is started.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from speclab import paths, whole
from speclab.errors import UserError

MODELS_FILE = "models.json"
CARD = "README.md"
"""What a folder says about its weights to a reader: written anew after each measurement, and no part of them."""


def digest(model: str) -> str | None:
    """Return what tells a model's weights from others.

    Parameters
    ----------
    model : str
        A folder, from the checkout's root, or a name on the model hub.

    Returns
    -------
    str or None
        ``sha256:`` and a hash of names and contents of the folder's files, its card apart; ``revision:`` and the hub's
        revision of the files in this machine's cache; None where neither is here.
    """
    folder = paths.root() / model
    if not folder.is_dir():
        return _hub_revision(model)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CARD)
    return _digest(folder, tuple((file, (seen := file.stat()).st_size, seen.st_mtime_ns) for file in files))


def hold(lab_folder: Path, models: Iterable[str]) -> None:
    """Note the digests of some models beside a lab's cells, or find that they are not those of the cells there.

    Parameters
    ----------
    lab_folder : Path
        ``<runs>/<engine>-<device>/<lab>``.
    models : iterable of str
        As in `digest`.

    Raises
    ------
    UserError
        Cells there were measured with other weights, or the file cannot be read or written.
    """
    file, noted = lab_folder / MODELS_FILE, read(lab_folder)
    digests = {model: now for model in models if (now := digest(model)) is not None}
    for model, now in digests.items():
        if noted.get(model, now) != now:
            raise UserError(
                f"the cells here were measured with other weights of {model}",
                "give this run a folder of its own (--out), or move the old cells and this file away",
                file=file,
                key=model,
            )
    if not digests.keys() <= noted.keys():
        content = json.dumps({**noted, **digests}, indent=1, sort_keys=True) + "\n"
        whole.write(file, content, "the models' digests")


def read(lab_folder: Path) -> dict[str, str]:
    """Return the noted digest of each model; empty where none was noted.

    Raises
    ------
    UserError
        The file is damaged.
    """
    file = lab_folder / MODELS_FILE
    try:
        noted = json.loads(file.read_bytes())
        return {str(model): str(known) for model, known in noted.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, AttributeError) as error:
        raise UserError(f"not a list of digests ({error})", "take it from git again", file=file) from None


@cache
def _digest(folder: Path, files: tuple[tuple[Path, int, int], ...]) -> str:
    """Return the hash of a folder's files; size and time of change say when they have to be read again."""
    total = hashlib.sha256()
    for file, _, _ in files:
        with file.open("rb") as content:
            total.update(file.relative_to(folder).as_posix().encode() + b"\0")
            total.update(hashlib.file_digest(content, "sha256").digest())
    return f"sha256:{total.hexdigest()}"


def _hub_revision(model: str) -> str | None:
    if find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        config = try_to_load_from_cache(model, "config.json")
    except HFValidationError:  # a folder that is not there
        return None
    return f"revision:{Path(config).parent.name}" if isinstance(config, str) else None
