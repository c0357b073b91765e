"""The prompts of the three workloads, the same for every arm, in the same order."""

from speclab.prompts.base import Prompt, PromptSet
from speclab.prompts.counts import summary, token_counts
from speclab.prompts.human_eval import hinted
from speclab.prompts.workloads import load

__all__ = ["Prompt", "PromptSet", "hinted", "load", "summary", "token_counts"]
