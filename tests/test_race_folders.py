"""Folders of races that run at the same time: one race removes the common folder while another needs it."""

import threading

from preselect.race.job import own_folder


def test_a_race_has_its_folder_while_others_end(tmp_path):
    parent, failures = tmp_path / "pool.journal.running", []

    def race(name):
        for number in range(300):
            with own_folder(parent, f"{name}-{number}") as folder:
                failures.extend([] if folder.is_dir() else [folder])

    threads = [threading.Thread(target=race, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert not parent.exists()
