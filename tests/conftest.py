"""What tests of several rooms ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speclab import results

pytest_plugins = ["forked_kernels"]
collect_ignore_glob = ["*.ipynb"]  # tests' own; those of the book are collected by nbval


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes minutes, unless an expression or a path on the command line asks for it."""
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
