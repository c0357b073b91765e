"""The packages of the extra ``probe``, or one sentence that says how to get them."""

from __future__ import annotations

import importlib
from typing import Any

from speclab.errors import UserError


def needed(module: str) -> Any:
    """Return a package of the extra ``probe``.

    Raises
    ------
    UserError
        It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        problem = f"the package {module} is not installed"
        raise UserError(problem, "install the extra: pip install -e '.[probe]'") from None
