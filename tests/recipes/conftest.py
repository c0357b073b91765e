from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from small_checkout import BASELINE, HEAD, LAB, Checkout

from speclab import paths


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """The package, the templates, what is published, and one lab of four cells."""
    here = paths.root()
    shutil.copytree(here / "src" / "speclab", tmp_path / "src" / "speclab")
    shutil.copytree(here / "notebooks", tmp_path / "notebooks")
    shutil.copytree(here / "labs", tmp_path / "labs")
    (tmp_path / "data" / "derived").mkdir(parents=True)
    for folder in ("published", "drafters", "derived/lab09", "derived/cpu-smollm2"):  # what calibrations rest on
        (tmp_path / "data" / folder).symlink_to(here / "data" / folder)
    (tmp_path / "constraints.txt").symlink_to(here / "constraints.txt")
    lab = tmp_path / "labs" / "small"
    lab.mkdir()
    for name, text in (("lab", LAB), ("baseline", BASELINE), ("eagle3-k3", HEAD)):
        (lab / f"{name}.yml").write_text(text, encoding="utf-8")
    return Checkout(tmp_path)
