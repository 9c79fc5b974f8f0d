"""Which 5 of 40 articles should a page show to a reader? Learn from clicks, while articles come and go every hour.

At most 2 of a section are shown, readers may click on nothing, and half-way the program stops and resumes from a file.
Readers are simulated: replace `click` by what yours do.
"""

import argparse
import tempfile

import numpy as np

from preselect import Preselector

SECTIONS = ["politics", "sport", "culture", "science"]
READER = ["age", "evening", "mobile", "visits"]
NOBODY = 3.0  # log-utility of clicking on nothing


class World:
    """What has to be found out: which articles attract which readers."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        self.taste = self.generator.normal(size=(8, len(READER))) / 4
        self.articles = {}  # embeddings

    def write_article(self):
        name, section = f"article {len(self.articles) + 1}", str(self.generator.choice(SECTIONS))
        self.articles[name] = self.generator.normal(size=8)
        return name, section

    def utilities(self, names, reader):
        return np.array([self.articles[name] @ self.taste @ list(reader.values()) for name in names])

    def click(self, names, reader):
        u = np.append(self.utilities(names, reader), NOBODY)
        place = int(np.argmax(u + self.generator.gumbel(size=len(u))))
        return names[place] if place < len(names) else None

    def chance(self, names, reader):
        v = np.exp(self.utilities(names, reader)).sum()
        return v / (v + np.exp(NOBODY))


def run_hour(preselector, world, readers):
    """Return the mean chance of a click, with our articles and with random ones."""
    chances = []
    for _ in range(readers):
        reader = dict(zip(READER, world.generator.normal(size=4).tolist(), strict=True))
        decision = preselector.select(reader, k=5, at_most=dict.fromkeys(SECTIONS, 2))
        preselector.learn(decision, winner=world.click(decision.names, reader))  # None: on nothing
        sets = decision.names, world.generator.permutation(preselector.arms)[:5]
        chances.append([world.chance(names, reader) for names in sets])
    return np.mean(chances, axis=0)


def main(hours, readers, seed):
    world = World(seed)
    sections = dict(world.write_article() for _ in range(40))
    preselector = Preselector(world.articles, READER, groups=sections, nobody_may_win=True, seed=seed)
    for hour in range(hours):
        if hour == hours // 2:
            with tempfile.NamedTemporaryFile() as file:
                preselector.save(file.name)
                preselector = Preselector.load(file.name)
        ours, random = run_hour(preselector, world, readers)
        print(f"hour {hour + 1}: chance of a click {ours:.3f}, with random articles {random:.3f}")
        for old in preselector.arms[:5]:  # the oldest leave
            preselector.remove(old)
            name, section = world.write_article()
            preselector.add(name, world.articles[name], group=section)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, default in (("--hours", 8), ("--readers", 300), ("--seed", 0)):
        parser.add_argument(option, type=int, default=default, help=f"default: {default}")
    main(**vars(parser.parse_args()))
