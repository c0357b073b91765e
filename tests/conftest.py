"""What tests of several rooms ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from speclab import results

pytest_plugins = ["forked_kernels"]
collect_ignore_glob = ["*.ipynb"]  # tests' own; those of the book are collected by nbval


@pytest.fixture
def partly_failed() -> results.Results:
    """The CPU lab as if no cell with one request in flight had passed its checks."""
    whole = results.of("cpu-smollm2", "vllm")
    cells = whole.tables.cells
    failed = cells["failed_checks"].where(cells["concurrency"] != 1, "stationarity")
    return results.Results(whole.lab, replace(whole.tables, cells=cells.assign(failed_checks=failed)))
