"""The examples run as written, and what they print shows that they learn."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, *options):
    """Run an example; return the numbers that each line prints after a colon, one list per line."""
    command = [sys.executable, EXAMPLES / name, *options]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [[float(number) for number in re.findall(r"\d+\.\d+", line.split(":")[1])] for line in printed.splitlines()]


def test_language_models_are_chosen_better_and_better():
    missed = [quality for (quality,) in run("language_models.py", "--prompts", "1200")]
    assert len(missed) == 4
    assert missed[-1] < 0.5 * missed[0]


def test_a_web_page_attracts_more_clicks_than_random_articles_after_a_restart_too():
    chances = run("web_page.py", "--hours", "4", "--readers", "200")
    assert len(chances) == 4
    assert all(ours > random + 0.05 for ours, random in chances)
    assert chances[-1][0] - chances[-1][1] > 1.2 * (chances[0][0] - chances[0][1])


def test_examples_are_short():
    assert all(len((EXAMPLES / name).read_text().splitlines()) < 80 for name in ("language_models.py", "web_page.py"))
