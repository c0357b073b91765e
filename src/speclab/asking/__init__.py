"""A question to the calibrated model as a person puts it: names, lists and milliseconds, checked and answered."""

from speclab.asking.answer import Answered, answer
from speclab.asking.asked import Asked, Method

__all__ = ["Answered", "Asked", "Method", "answer"]
