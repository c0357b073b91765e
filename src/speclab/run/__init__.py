"""Run a lab: what is missing of its arms, cell by cell on the servers that are up, each recorded as it ends."""

from speclab.run.arms import ArmRun, run, run_arm, tables_of
from speclab.run.lab import run_lab

__all__ = ["ArmRun", "run", "run_arm", "run_lab", "tables_of"]
