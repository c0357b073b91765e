"""The prompts of the three workloads, the same for every arm, in the same order."""
