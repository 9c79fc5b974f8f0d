"""Write 50 files of five kinds, on which compressors differ: words, tables, logs, numbers and random bytes."""

import argparse
import random
import struct
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("files"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    generator = random.Random(given.seed)
    kinds = list(KINDS) * 10
    generator.shuffle(kinds)
    for number, kind in enumerate(kinds):
        size = int(10_000 * 2 ** generator.uniform(0, 5))
        (given.out / f"{number:02}-{kind}").write_bytes(KINDS[kind](generator, size)[:size])


def write_words(generator, size):
    words = ["".join(generator.choices("etaoinshrdlu", k=generator.randint(2, 9))) for _ in range(400)]
    return " ".join(generator.choices(words, weights=[1 / (1 + rank) for rank in range(400)], k=size // 3)).encode()


def write_table(generator, size):
    return "\n".join(
        f"{row},{generator.gauss(0, 1):.4f},{generator.randint(0, 999)}" for row in range(size // 8)
    ).encode()


def write_log(generator, size):
    paths = [f"/page/{number}" for number in range(30)]
    return "\n".join(
        f"10.0.0.{generator.randint(1, 40)} GET {generator.choice(paths)} HTTP/1.1 200 {generator.randint(100, 9999)}"
        for _ in range(size // 30)
    ).encode()


def write_numbers(generator, size):
    value, found = 0, []
    for _ in range(size // 4 + 1):
        value += generator.randint(-20, 20)
        found.append(struct.pack("<i", value))
    return b"".join(found)


def write_random(generator, size):
    return generator.randbytes(size)


KINDS = {"words": write_words, "table": write_table, "log": write_log, "numbers": write_numbers, "random": write_random}

if __name__ == "__main__":
    main()
