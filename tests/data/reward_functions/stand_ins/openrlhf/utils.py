"""Stands in for OpenRLHF's grader, which needs sympy: the last box, compared as text."""

import re


def extract_boxed_answer(text):
    found = re.findall(r"\\boxed\{([^{}]*)\}", text)
    return found[-1] if found else None


def grade_answer(given, truth):
    return given is not None and given.strip() == truth.strip()
