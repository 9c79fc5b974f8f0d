"""Replicas on PostgreSQL: any of them answers, one learns, and all have one state."""

import asyncio
import contextlib

import psycopg
import pytest

from preselect import Preselector
from preselect.errors import ConflictError, ExpiredError, InputError, JournalError, NotFoundError
from preselect.serve.limits import ServiceLimits
from preselect.serve.metrics import Metrics
from preselect.serve.replica import Replica
from preselect.serve.schemas import ArmTerms, NewDecision, NewOutcome, NewPreselector, NumberedOutcome
from preselect.serve.shared_engine import SharedEngine
from preselect.store import Journal, Learner, verify
from preselect.store.copy import copy_journals
from preselect.store.restore import read_preselector, restore

NEW = NewPreselector(arms={"a": {"x": 1.0}, "b": {"x": 2.0}, "c": {}}, context=["size"])
SHOWN = {"size": 1.5}


def run(test, url, replicas=2):
    """Run a coroutine with some replicas that have started."""

    async def start():
        async with contextlib.AsyncExitStack() as stack:
            started = []
            for _ in range(replicas):
                limits = ServiceLimits()
                started.append(Replica(SharedEngine(url, limits), limits, Metrics()))
                await started[-1].start()
                stack.push_async_callback(started[-1].close)
            await asyncio.wait_for(test(*started), 60)

    asyncio.run(start())


async def agree(*replicas, name="p"):
    """Wait until all replicas have all events, and return the counts."""
    for _ in range(500):
        found = [await replica.describe(name) for replica in replicas]
        if all(one == found[0] for one in found) and not replicas[0]._shared._storage.pending(name):
            return found[0]
        await asyncio.sleep(0.02)
    raise AssertionError([(one.number, one.version) for one in found])


def test_what_one_does_the_other_knows(postgres):
    async def play(one, other):
        _, is_new = await one.create("p", NEW)
        assert is_new
        assert (await other.create("p", NEW))[1] is False
        with pytest.raises(ConflictError):
            await other.create("p", NewPreselector(arms=["z"]))
        for place in range(10):
            here, there = (one, other) if place % 2 else (other, one)
            decision, is_new = await here.decide("p", NewDecision(k=2, context=SHOWN))
            assert is_new
            assert (await there.find_decision(decision.id, None, True)).names == decision.names
            ending = await there.tell(decision.id, NewOutcome(winner=decision.names[0]), None)
            assert (ending.status, ending.is_new) == ("told", True)
            ending = await here.tell(decision.id, NewOutcome(winner=decision.names[0]), None)
            assert (ending.status, ending.is_new) == ("told", False)
            with pytest.raises(ConflictError):
                await here.tell(decision.id, NewOutcome(winner=decision.names[1]), None)
        assert (await other.put_arm("p", "d", ArmTerms({"x": 3.0})))[1]
        assert (await one.put_arm("p", "d", ArmTerms({"x": 3.0})))[1] is False
        assert (await one.put_arm("p", "d", ArmTerms({"x": 4.0}, price=2.0)))[1] is False
        await one.retire_arm("p", "c")
        with pytest.raises(NotFoundError):
            await one.retire_arm("p", "c")
        with pytest.raises(InputError):
            await other.put_arm("p", "e", ArmTerms({"nonsense": 3.0}))
        found = await agree(one, other)
        assert sorted(found.arms) == ["a", "b", "d"]
        assert (found.decisions, found.told, found.waiting, found.number) == (10, 10, 0, 23)
        assert one._shared._followers["p"].leads + other._shared._followers["p"].leads == 1
        rounds = await one.rounds("p", 0, 4)
        assert [one_round.status for one_round in rounds.rounds] == ["told"] * 4
        assert (await other.rounds("p", rounds.next, 100)).next is None

    run(play, postgres)
    assert read_preselector(postgres, "p").arms == ["a", "b", "d"]


def test_the_same_request_at_both_gives_one_decision(postgres):
    async def play(one, other):
        await one.create("p", NEW)
        for place in range(20):
            new = NewDecision(k=2, context=SHOWN, request_id=f"r{place}")
            found = await asyncio.gather(*(replica.decide("p", new) for replica in (one, other, one, other)))
            assert len({decision.id for decision, _ in found}) == 1
            assert sum(is_new for _, is_new in found) == 1
            tell = NewOutcome(winner=found[0][0].names[0]), NewOutcome(winner=found[0][0].names[1])
            told = await asyncio.gather(
                *(replica.tell(found[0][0].id, tell[side], None) for side, replica in enumerate((one, other))),
                return_exceptions=True,
            )
            assert sorted(isinstance(one, ConflictError) for one in told) == [False, True], told
        with pytest.raises(ConflictError):
            await one.decide("p", NewDecision(k=1, context=SHOWN, request_id="r0"))
        found = await agree(one, other)
        assert (found.decisions, found.told) == (20, 20)

    run(play, postgres)


def test_arms_that_join_at_both_at_once_join_once(postgres):
    async def play(one, other):
        await one.create("p", NEW)
        for place in range(5):
            terms = ArmTerms({"x": float(place)})
            calls = [replica.put_arm("p", f"new{place}", terms) for replica in (one, other, one, other)]
            assert sum(is_new for _, is_new in await asyncio.gather(*calls)) >= 1
        found = await agree(one, other)
        assert len(found.arms) == 8
        assert found.number == 5

    run(play, postgres)


def test_batches_have_results_one_by_one(postgres):
    async def play(one, other):
        await one.create("p", NEW)
        made = [(await one.decide("p", NewDecision(k=2, context=SHOWN)))[0] for _ in range(4)]
        await other.tell(made[0].id, NewOutcome(winner=made[0].names[0]), None)
        await other.tell(made[1].id, NewOutcome(winner=made[1].names[0]), None)
        outcomes = [
            NumberedOutcome(id=made[0].id, winner=made[0].names[0]),
            NumberedOutcome(id=made[1].id, winner=made[1].names[1]),
            NumberedOutcome(id=made[2].id, winner=made[2].names[1]),
            NumberedOutcome(id=made[2].id, winner=made[2].names[1]),
            NumberedOutcome(id="nothing", winner="a"),
            NumberedOutcome(id=made[3].id, winner="nobody"),
        ]
        found = await one.tell_many(outcomes, None)
        assert [result.status for result in found] == [200, 409, 201, 200, 404, 422]

    run(play, postgres)


def test_decisions_expire_once(postgres):
    async def play(one, other):
        await one.create("p", NEW)
        decision, _ = await other.decide("p", NewDecision(k=2, context=SHOWN, expires_s=0.01))
        late, _ = await other.decide("p", NewDecision(k=2, context=SHOWN, expires_s=0.01))
        await asyncio.sleep(0.05)
        with pytest.raises(ExpiredError):
            await one.tell(late.id, NewOutcome(winner=late.names[0]), None)
        while (await other.find_decision(decision.id, None, False)).status != "expired":
            await asyncio.sleep(0.05)
        for replica in (one, other):
            with pytest.raises(ExpiredError):
                await replica.tell(decision.id, NewOutcome(winner=decision.names[0]), None)
        found = await agree(one, other)
        assert (found.decisions, found.expired, found.waiting) == (2, 2, 0)

    run(play, postgres)


def test_journals_that_no_service_began_are_left_alone(postgres):
    with Learner.open(postgres, "race", make=lambda: Preselector(["a", "b"], seed=0)) as learner:
        learner.select(k=1)

    async def play(one, other):
        await one.create("p", NEW)
        assert [found.name for found in await one.describe_all()] == ["p"]
        with pytest.raises(NotFoundError):
            await other.describe("race")
        with pytest.raises(ConflictError):
            await other.create("race", NEW)
        assert (await other.put_arm("p", "d", ArmTerms()))[1]

    run(play, postgres)


def test_a_damaged_preselector_does_not_stop_the_others(postgres):
    async def play(one, other):
        await one.create("bad", NEW)
        await one.create("p", NEW)
        await one.decide("bad", NewDecision(k=2, context=SHOWN))
        await agree(one, other, name="bad")
        with psycopg.connect(postgres, autocommit=True) as server:
            columns, values = "journal, at, kind, key, text", "'bad', 0, 'arm', 'x', 'nonsense'"
            server.execute(f"INSERT INTO preselect.events ({columns}) VALUES ({values})")
        await asyncio.sleep(1.2)
        decision, _ = await other.decide("p", NewDecision(k=2, context=SHOWN))
        await one.tell(decision.id, NewOutcome(winner=decision.names[0]), None)
        assert (await agree(one, other)).told == 1

    run(play, postgres)


def test_a_cut_connection_is_mended(postgres):
    async def play(one, other):
        await one.create("p", NEW)
        before, _ = await one.decide("p", NewDecision(k=2, context=SHOWN))
        with psycopg.connect(postgres, autocommit=True) as server:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        for replica in (one, other):
            for _ in range(100):
                with contextlib.suppress(JournalError):
                    await replica.tell(before.id, NewOutcome(winner=before.names[0]), None)
                    break
                await asyncio.sleep(0.05)
            assert await replica.is_ready()
        assert (await agree(one, other)).told == 1
        assert (await other.put_arm("p", "d", ArmTerms()))[1]

    run(play, postgres)


def test_all_is_one_state_which_a_copy_replays_to_the_same_bits(postgres, tmp_path):
    async def play(one, other):
        await one.create("p", NEW)

        async def work(number, here, there):
            for place in range(15):
                decision, _ = await here.decide("p", NewDecision(k=2, context={"size": number + place / 7}))
                if place == 7:
                    await there.put_arm("p", f"new{number}", ArmTerms({"x": float(number)}))
                await there.tell(decision.id, NewOutcome(winner=decision.names[place % 2]), None)

        await asyncio.gather(*(work(number, *((one, other) if number % 2 else (other, one))) for number in range(4)))
        found = await agree(one, other)
        assert (found.decisions, found.told, found.number) == (60, 60, 124)
        states.extend(replica._shared._followers["p"].preselector.to_bytes() for replica in (one, other))

    states = []
    run(play, postgres)
    assert states[0] == states[1]
    copied = tmp_path / "copy.journal"
    assert copy_journals(postgres, copied) == {"p": 124}
    for url in (postgres, copied):
        with Journal.read(url, "p") as journal:
            assert restore(journal).fold.preselector.to_bytes() == states[0]
            assert sorted(row.number for row in journal.storage.read("p")) == list(range(1, 125))
        assert verify(url, name="p").equal
