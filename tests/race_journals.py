"""Journals of races as the tests of summaries and reports need them, and a reader of pages."""

import random
import re
from collections import Counter
from html.parser import HTMLParser

from preselect import NoWinner, Preselector, Void
from preselect.store import Learner

SOLVERS = {"cadical": {"cdcl": 1.0}, "saps": {"cdcl": 0.0}, "kissat": {"cdcl": 1.0}}
ENDINGS = ("killed", "finished late", "timeout", "memory", "crashed", "wrong answer", "no answer")


def open_learner(path, *, arms=SOLVERS, context=("size", "ratio"), policy="newton", about=None):
    return Learner.open(path, make=lambda: Preselector(arms, context, policy=policy, seed=3), about=about)


def details(seconds, statuses, *, limit=60.0):
    racers = {name: {"status": status, "seconds": seconds, "detail": ""} for name, status in statuses.items()}
    return {"seconds": seconds, "feature_seconds": 0.25, "limit": limit, "racers": racers, "reason": None}


def play(learner, races, *, seed=0):
    """Race with every kind of end; return what the page should count, as counted by the test."""
    generator, book = random.Random(seed), Counter()
    for place in range(races):
        values = [generator.uniform(0, 9) for _ in learner.preselector.context]
        entry = learner.select(values, k=2, label=f"{place}.cnf")
        first, second = generator.sample(entry.decision.names, 2)
        how = generator.choice(["won", "won", "won", "nobody", "void"])
        seconds, other = round(generator.uniform(0.1, 50.0), 3), generator.choice(ENDINGS)
        statuses = {first: "won" if how == "won" else "timeout", second: other}
        ended = {"won": {"winner": first}, "nobody": {"outcome": NoWinner()}, "void": {"outcome": Void()}}[how]
        learner.learn(entry, details=details(seconds, statuses), **ended)
        book[how] += 1
        book["seconds"] += seconds if how != "void" else 0.0
        for name, status in statuses.items():
            book["played", name] += 1
            book[status, name] += 1
        if how == "won":
            book["winning seconds", first] += seconds
    return book


class Reading(HTMLParser):
    """What a browser would make of a page: tables, tiles, facts, all text, and the tags with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.text, self.tags = [], "", []
        self.place = None
        self.feed(page)
        self.close()
        self.words = " ".join(self.text.split())
        self.tiles = {name.strip(): value for value, name in re.findall(r"<div><b>([^<]*)</b>([^<]*)</div>", page)}
        self.facts = dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.place = tag if tag in ("td", "th", "b", "style", "br", "small") else self.place
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "br":
            self.handle_data(" ")

    def handle_endtag(self, tag):
        self.place = None if tag in ("table", "td", "th", "style", "b") else self.place

    def handle_data(self, data):
        if self.place == "style":
            return
        self.text += data
        if self.tables and self.place in ("td", "th", "br", "small"):
            self.tables[-1][-1][-1] += data

    def table(self, *header):
        """The table whose header begins so, as maps by column."""
        found = next(rows for rows in self.tables if rows[0][: len(header)] == list(header))
        return [dict(zip(found[0], row, strict=True)) for row in found[1:]]
