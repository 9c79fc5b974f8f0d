"""Which language models should answer a prompt? Ask the 2 most promising of 8, let a judge rate them, and learn.

Eight prompts are answered at a time, and ratings arrive in whatever order the answers do. Models and judge are
simulated: replace `ask` and `judge` by your own.
"""

import argparse
import asyncio

import numpy as np

from preselect import Preselector

PRICES = {  # cents per answer
    "tiny": 0.1,
    "small": 0.2,
    "swift": 0.4,
    "poet": 0.5,
    "coder": 0.8,
    "sage": 1.0,
    "solver": 1.5,
    "grand": 2.0,
}
TOPICS = ["code", "maths", "prose", "length"]
BUDGET = 2.5  # cents per prompt


class World:
    """What has to be found out: how good each model is at each kind of prompt."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        skills = self.generator.normal(size=(len(PRICES), len(TOPICS)))
        self.skills = dict(zip(PRICES, skills, strict=True))

    def make_prompt(self):
        return dict(zip(TOPICS, self.generator.dirichlet(np.ones(4)).tolist(), strict=True))

    def quality(self, model, prompt):
        return float(self.skills[model] @ list(prompt.values()))

    async def ask(self, model, prompt):
        await asyncio.sleep(0.003 * self.generator.random())
        return self.quality(model, prompt) + 0.3 * self.generator.normal()

    def judge(self, answer):
        return int(np.clip(round(3 + answer), 1, 5))  # from 1 to 5


async def serve(preselector, world):
    """Answer one prompt; return how much better the best model would have been than the better one of ours."""
    prompt = world.make_prompt()
    decision = preselector.select(prompt, k=2, budget=BUDGET)
    answers = await asyncio.gather(*(world.ask(model, prompt) for model in decision.names))
    ratings = {model: world.judge(answer) for model, answer in zip(decision.names, answers, strict=True)}
    preselector.learn(decision, ratings=ratings)  # equal ratings are ties
    best = max(world.quality(model, prompt) for model in PRICES)
    return best - max(world.quality(model, prompt) for model in decision.names)


async def main(prompts, seed):
    world, missed = World(seed), []
    preselector = Preselector(list(PRICES), context=TOPICS, prices=PRICES, seed=seed)
    while len(missed) < prompts:
        missed += await asyncio.gather(*(serve(preselector, world) for _ in range(8)))
    for part in np.array_split(missed, 4):
        print(f"quality missed in the next {len(part)} prompts: {np.mean(part):.3f} on average")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=2000, help="how many (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="another world (default: 0)")
    asyncio.run(main(**vars(parser.parse_args())))
