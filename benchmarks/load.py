"""What the load benchmark sends where wrk is not installed: raw sockets in one event loop, in a process of its own.

python load.py PORT MODE SECONDS CONNECTIONS FILE; MODE is health, select, outcome or both. The file has the decisions
that `select` got, for `outcome`.
"""

import asyncio
import json
import random
import sys
import time

try:
    import uvloop
except ImportError:
    uvloop = asyncio


class Load:
    def __init__(self, mode, seconds, path):
        self.mode, self.path, self.end = mode, path, time.perf_counter() + seconds
        self.random, self.times, self.failed = random.Random(0), [], 0
        self.waiting = []
        if mode == "outcome":
            with open(path, encoding="ascii") as file:
                self.waiting = [tuple(line.split()) for line in file]
        self.seen = []

    def make(self):
        if self.mode == "health":
            return "GET", "/healthz", ""
        if self.mode != "select" and self.waiting:
            decision, winner = self.waiting.pop()
            return "PUT", f"/v1/decisions/{decision}/outcome", json.dumps({"winner": winner})
        if self.mode == "outcome":
            return None
        context = [self.random.random() for _ in range(8)]
        return "POST", "/v1/preselectors/bench/decisions", json.dumps({"k": 4, "context": context})

    async def drive(self, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < self.end and (made := self.make()):
            method, path, body = made
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            start = time.perf_counter()
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            status, content = await read_answer(reader)
            self.times.append(time.perf_counter() - start)
            self.note(status, content)
        writer.close()

    def note(self, status, content):
        self.failed += status not in (200, 201)
        found = json.loads(content)
        if "names" in found:
            (self.seen if self.mode == "select" else self.waiting).append((found["id"], found["names"][0]))


async def read_answer(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return int(head[9:12]), await reader.readexactly(length)


async def main():
    port, mode, seconds, connections, path = sys.argv[1:]
    load, start = Load(mode, float(seconds), path), time.perf_counter()
    await asyncio.gather(*(load.drive(int(port)) for _ in range(int(connections))))
    took, times = time.perf_counter() - start, sorted(load.times)
    if mode == "select":
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{decision} {winner}\n" for decision, winner in load.seen)
    found = {"requests": len(times), "seconds": took, "failed": load.failed}
    found |= {name: times[int(len(times) * share)] for name, share in (("p50", 0.5), ("p99", 0.99))}
    print("RESULT", json.dumps(found))


if __name__ == "__main__":
    uvloop.run(main()) if uvloop is not asyncio else asyncio.run(main())
