"""What tests of studies share."""

import json

from preselect import state, study
from preselect.study import Results


def compute(folder, plan, **options):
    """Run a study in this process, unless the options say otherwise."""
    results = Results.create(folder, plan)
    study.compute(results, plan, **{"workers": 1, **options})
    return results


def read_contents(folder):
    """Read what must be the same in every run: all curves, and the tables except the timing."""
    curves = state.read(folder / "curves.npz").arrays
    texts = [(folder / f"{name}.csv").read_text() for name in ("summary", "paired", "ratios")]
    return {name: values.tolist() for name, values in curves.items()}, texts


def age(folder):
    """Rewrite results as they were at first: settings were scenarios, and neither data nor command were kept."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["parameters"]["scenarios"] = manifest["parameters"].pop("settings")
    del manifest["data"], manifest["command"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for path in (folder / "blocks").rglob("*.npz"):
        block = state.read(path)
        header = {"scenario" if name == "setting" else name: value for name, value in block.header["task"].items()}
        state.write(path, block.kind, {"task": header}, block.arrays)
