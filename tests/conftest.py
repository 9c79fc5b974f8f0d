import json

import hypothesis
import pytest

# Numbers are drawn alike in every run, and a first call may have to compile.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture
def pool(tmp_path):
    """Writes a pool of arms that are shell scripts, and gives its path."""

    def write(arms, *, head="", features='from = "sat"', seconds=20, **more):
        tables = "".join(
            f'[arms.{name}]\ncommand = ["/bin/sh", "-c", {json.dumps(script)}, "{{instance}}"]\n{more.get(name, "")}\n'
            for name, script in arms.items()
        )
        path = tmp_path / "pool.toml"
        path.write_text(f"{head}\n[limits]\nseconds = {seconds}\n[features]\n{features}\n{tables}")
        return path

    return write
