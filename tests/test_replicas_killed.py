"""Replicas that are killed at random moments: nothing acknowledged is lost, and nothing is learnt twice."""

import pytest
from replica_processes import play

from preselect.store import Journal, verify
from preselect.store.copy import copy_journals
from preselect.store.restore import restore


def check(url, folder, writers, takeovers):
    told = {key: winner for writer in writers for key, winner in writer.told.items()}
    with Journal.read(url, "p") as journal:
        rounds = {made.event.key: ending and ending.event for made, ending in journal.rounds()}
        lost = [key for key, winner in told.items() if rounds[key] is None or rounds[key].names != (winner,)]
        assert lost == []
        endings = [row.key for row in journal.storage.read("p") if row.kind == "outcome"]
        assert len(endings) == len(set(endings))
        state = restore(journal).fold.preselector
        assert state.policy.observations == len(endings)
        assert state.policy.rounds == len(rounds)
        assert {arm for writer in writers for arm in writer.arms} <= set(state.arms)
    assert verify(url, name="p").difference is None
    copy_journals(url, folder / "copy.journal")
    assert verify(folder / "copy.journal", name="p").difference is None
    with Journal.read(folder / "copy.journal", "p") as journal:
        assert restore(journal).fold.preselector.to_bytes() == state.to_bytes()
    assert max(takeovers) <= 5.0, takeovers
    return len(told)


@pytest.mark.soak
def test_leaders_and_followers_are_killed_in_turn(postgres, tmp_path):
    writers, takeovers = play(postgres, tmp_path, kills=50, seed=1)
    told = check(postgres, tmp_path, writers, takeovers)
    print(f"{told} outcomes told, {sum(writer.repeats for writer in writers)} requests repeated,", end=" ")
    print(f"takeover after {sorted(takeovers)[len(takeovers) // 2]:.2f} s, at most {max(takeovers):.2f} s")
