"""``python -m speclab.cli``."""

from speclab.cli import app

app()
