"""A service with a history, for tests and pictures of the dashboard."""

import math
import random

ARMS = {
    "storm": {"length": 2, "sport": 0},
    "final": {"length": 5, "sport": 1},
    "recipe": {"length": 3, "sport": 0},
    "strike": {"length": 4, "sport": 0},
    "derby": {"length": 6, "sport": 1},
    "moon": {"length": 8, "sport": 0},
    "garden": {"length": 7, "sport": 0},
    "marathon": {"length": 9, "sport": 1},
    "election": {"length": 5, "sport": 0},
    "weather": {"length": 1, "sport": 0},
}
HOSTILE = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>&'\""


def put_articles(client, name="articles", **options):
    body = {"arms": ARMS, "context": ["age", "evening"]}
    answer = client.put(f"/v1/preselectors/{name}", json=body, **options)
    assert answer.status_code in (200, 201), answer.text


def play(client, rounds, *, name="articles", seed=0, told=0.9, **options):
    """Readers of whom the young ones like sport, and all like short texts."""
    generator = random.Random(seed)
    for number in range(rounds):
        age, evening = generator.uniform(18, 80), generator.randint(0, 1)
        asked = {"k": 3, "context": {"age": age, "evening": evening}, "label": f"visit {number}"}
        made = client.post(f"/v1/preselectors/{name}/decisions", json=asked, **options).json()
        utilities = [
            (3 if age < 45 else -1) * ARMS[arm]["sport"] - 0.3 * ARMS[arm]["length"] if arm in ARMS else 0.0
            for arm in made["names"]
        ]
        pick = generator.choices(made["names"], [math.exp(one) for one in utilities])[0]
        if generator.random() < told:
            client.put(f"/v1/decisions/{made['id']}/outcome", json={"winner": pick}, **options)
    return made
