from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from speclab.errors import UserError
from speclab.record import models

MODEL = "models/small"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one model; returns the model's folder."""
    monkeypatch.setenv("SPECLAB_ROOT", str(tmp_path))
    made = tmp_path / MODEL
    made.mkdir(parents=True)
    (made / "config.json").write_bytes(b"{}")
    return made


def test_a_digest_by_hand(folder: Path) -> None:
    expected = hashlib.sha256(b"config.json\0" + hashlib.sha256(b"{}").digest()).hexdigest()
    assert models.digest(MODEL) == f"sha256:{expected}"


def test_a_card_is_no_part_of_the_weights(folder: Path) -> None:
    before = models.digest(MODEL)
    (folder / "README.md").write_text("accepted more than ever", encoding="utf-8")
    assert models.digest(MODEL) == before


def test_a_digest_sees_contents_and_names(folder: Path) -> None:
    seen = {models.digest(MODEL)}
    (folder / "weights").write_bytes(b"1")
    seen.add(models.digest(MODEL))
    (folder / "weights").write_bytes(b"2")
    seen.add(models.digest(MODEL))
    (folder / "weights").rename(folder / "other")
    seen.add(models.digest(MODEL))
    assert len(seen) == 4


def test_a_model_that_is_not_here_has_no_digest(folder: Path) -> None:
    assert models.digest("models/none") is None
    assert models.digest("an-owner/a-model-that-nobody-made") is None


def test_digests_are_noted_once_and_held_against_what_is_there(folder: Path, tmp_path: Path) -> None:
    cells = tmp_path / "runs" / "lab"
    assert models.read(cells) == {}
    models.hold(cells, [MODEL, "models/none"])
    assert models.read(cells) == {MODEL: models.digest(MODEL)}
    models.hold(cells, [MODEL])
    (folder / "config.json").write_bytes(b'{"other": 1}')
    with pytest.raises(UserError, match=f"{MODEL}.*measured with other weights"):
        models.hold(cells, [MODEL])
    assert [path.name for path in cells.iterdir()] == [models.MODELS_FILE]


def test_a_model_that_has_gone_keeps_its_digest(folder: Path, tmp_path: Path) -> None:
    cells = tmp_path / "runs" / "lab"
    models.hold(cells, [MODEL])
    noted = models.read(cells)
    (folder / "config.json").unlink()
    folder.rmdir()
    models.hold(cells, [MODEL])
    assert models.read(cells) == noted


@pytest.mark.parametrize("content", ["not JSON", "[1]"])
def test_a_damaged_list_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / models.MODELS_FILE).write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match="not a list of digests"):
        models.read(tmp_path)


def test_a_folder_that_cannot_be_written_is_the_users_to_mend(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(json.dumps({}), encoding="utf-8")
    with pytest.raises(UserError, match="could not be written"):
        models.hold(tmp_path / "file" / "lab", [MODEL])
