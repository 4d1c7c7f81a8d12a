"""Checks many configs with verl's own checks in one process, which imports verl once.

A program of its own, run by test_train.py. It reads a JSON object of overrides by config name and
label, and prints the problems of each as one. The configs must be of one platform: verl chooses
its platform while it is imported.
"""

import json
import sys
from collections.abc import Sequence

from search_r1.config import compose
from search_r1.train import check_all


def problems(name: str, overrides: Sequence[str]) -> list[str]:
    report = check_all(compose(name, overrides))
    return [f"{problem.field}: {problem.message}" for problem in report.problems]


def main() -> None:
    asked = json.load(sys.stdin)
    found = {label: problems(name, overrides) for label, (name, *overrides) in asked.items()}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
