"""What tests of several rooms ask for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from kept_lab import write_lab
from speclab import results

pytest_plugins = ["forked_kernels"]
collect_ignore_glob = ["*.ipynb"]  # tests' own; those of the book are collected by nbval

SLOW_FIRST = {
    name: rank
    for rank, name in enumerate(
        (
            "test_replications_chapter10_sweep.py",
            "test_book_strict_build.py",
            "test_notebooks_bad_labs.py",
            "test_book_sphinx_ext.py",
            "test_results_source.py",
            "test_results_measured.py",
            "test_notebooks_sources.py",
            "test_interval_coverage.py",
            "test_cli_commands.py",
            "test_book_pages.py",
            "test_run_kept.py",
            "test_recipes_device.py",
            "test_recipes_metric.py",
            "test_recipes_arm.py",
            "test_findings_long_table.py",
            "test_engines_vllm.py",
        )
    )
}
"""Files of ten seconds and more: begun first, none of them is left over for one worker at the end."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the slow files first, and leave out what takes minutes unless an expression or a path asks for it."""
    items.sort(key=lambda item: SLOW_FIRST.get(item.path.name, len(SLOW_FIRST)))
    asked = " ".join([config.option.keyword, config.option.markexpr, *map(str, config.args)])
    wanted = {"whole_lab": ("h100", "whole_lab"), "kills": ("kills",)}
    closed = [marker for marker, words in wanted.items() if not any(word in asked for word in words)]
    left_out = [item for item in items if any(item.get_closest_marker(marker) for marker in closed)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def partly_failed() -> results.Results:
    """The CPU lab as if no cell with one request in flight had passed its checks."""
    whole = results.of("cpu-smollm2", "vllm")
    cells = whole.tables.cells
    failed = cells["failed_checks"].where(cells["concurrency"] != 1, "stationarity")
    return results.Results(whole.lab, replace(whole.tables, cells=cells.assign(failed_checks=failed)))


@pytest.fixture(scope="session")
def _kept_lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base  # each worker has a folder in one
    written = shared / "kept-lab"
    with FileLock(shared / "kept-lab.lock"):
        if not written.exists():
            made = base / "kept-lab-made"
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("SPECLAB_ROOT", str(made))
                write_lab(made)
            made.rename(written)
    return written


@pytest.fixture(scope="session")
def copy_kept_lab(_kept_lab: Path) -> Callable[[Path], None]:
    """Copy the lab of `kept_lab`, simulated once for all tests that pose as machines which measured it."""

    def copy(root: Path) -> None:
        shutil.copytree(_kept_lab, root, dirs_exist_ok=True)

    return copy
