"""`run` and `Study`: run a study from Python, get its results as data frames and figures, and compare policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeAlias

from preselect.arguments import integer, one_of, show
from preselect.errors import InputError
from preselect.own_classes import name_class
from preselect.policies import registry
from preselect.reports.figures import to_png
from preselect.reports.html import render
from preselect.study.figures import draw
from preselect.study.own import OwnSetting
from preselect.study.plan import Plan, Setting, find_plan_type
from preselect.study.report import name_winners, tabulate_summaries, write_report
from preselect.study.results import Results, Task
from preselect.study.runner import compute
from preselect.study.tables import list_columns, list_comparisons, list_curves, list_rows, list_totals

_Frame: TypeAlias = Any  # a pandas.DataFrame
_TABLES = ("totals", "curves", "summary", "ratios", "paired", "timing")


class Study:
    """A study of policies on environments, with its results in a folder. `run` makes one, `Study.open` opens one.

    In a notebook it shows its table and its figure.

    Parameters
    ----------
    results : Results
        What has been computed.
    """

    def __init__(self, results: Results) -> None:
        self.results = results

    @classmethod
    def create(cls, folder: str | PathLike[str], plan: Plan) -> Self:
        """Prepare a folder for a plan; if it holds results of the same study, the plan is added to them.

        Parameters
        ----------
        folder : str or path
            As `Results.create` takes it.
        plan : Plan
            What is to be computed.
        """
        results = Results.create(folder, plan)
        results.record_command(results.plan.write_command(results.folder))
        return cls(results)

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> Self:
        """Open the study in a folder, finished or not; its data and classes are not needed.

        Parameters
        ----------
        folder : str or path
            A folder with a manifest.json.
        """
        return cls(Results.open(folder))

    def compute(self, plan: Plan, **options: Any) -> None:
        """Compute what is missing from a plan, and write tables, figures and the report.

        Parameters
        ----------
        plan : Plan
            The plan of this study, or a part of it.
        **options : Any
            workers, cluster and report, as `run` takes them.
        """
        compute(self.results, plan, **options)
        write_report(self.results)

    @property
    def plan(self) -> Plan:
        """All parameters."""
        return self.results.plan

    @property
    def folder(self) -> Path:
        """Where the results are."""
        return self.results.folder

    def to_frame(self, table: str = "totals") -> _Frame:
        """Return a table as a pandas.DataFrame.

        Parameters
        ----------
        table : str, default "totals"
            "totals": each measure at the horizon, a row for each setting, policy and repetition.
            "curves": the same at every checkpoint.
            "summary", "ratios", "paired", "timing": as in the files of these names.
        """
        one_of(table, "table", _TABLES)
        if table == "totals":
            return _make_frame(list_totals(self.results))
        if table == "curves":
            return _make_frame(list_curves(self.results))
        return _make_frame(list_rows(self.results, table), list_columns(self.plan, table))

    def compare(self, policy: str | None = None, measure: str | None = None) -> _Frame:
        """Compare one policy with each of the others, repetition by repetition, as a pandas.DataFrame.

        `preselect.study.PairedComparison` describes the columns. p-values are missing where there are too few
        repetitions for any to be below 0.05.

        Parameters
        ----------
        policy : str, optional
            The policy, as `plan.policies` names it; by default the first one.
        measure : str, optional
            A key of `plan.measures`; by default the first one.
        """
        first = self.plan.policies[0] if policy is None else one_of(policy, "policy", self.plan.policies)
        others = tuple(name for name in self.plan.policies if name != first)
        manifest = replace(self.results.manifest, plan=replace(self.plan, policies=(first, *others)))
        rows = list_comparisons(Results(self.folder, manifest), self._choose(measure))
        return _make_frame(rows, list_columns(self.plan, "paired"))

    def plot(self, measure: str | None = None) -> Any:
        """Return the figure of a measure, a matplotlib Figure: a panel for each setting, with every policy's sums.

        Parameters
        ----------
        measure : str, optional
            A key of `plan.measures`; by default the first one.
        """
        return draw(self.results, self._choose(measure))

    def _choose(self, measure: str | None) -> str:
        names = tuple(self.plan.measures)
        return names[0] if measure is None else one_of(measure, "measure", names)

    def __repr__(self) -> str:
        finished, total = self.results.count_blocks(self.plan)
        return f"<Study {self.plan.kind} in {str(self.folder)!r}, {finished} of {total} blocks finished>"

    def _repr_html_(self) -> str:
        measure = self._choose(None)
        return render(
            "notebook.html",
            title=repr(self)[1:-1],
            measure=self.plan.measures[measure],
            winners=name_winners(self.results, measure),
            summary=tabulate_summaries(self.results, measure),
            figure=to_png(self.plot(measure)) if self.results.read_finished() else None,
        )


def run(
    environments: Any,
    policies: str | type | Iterable[str | type] | None = None,
    *,
    k: int | Iterable[int] | None = None,
    out: str | PathLike[str] | None = None,
    workers: int = -1,
    cluster: str | None = None,
    report: Callable[[int, int, Task | None], None] | None = None,
    **parameters: Any,
) -> Study:
    """Run policies on environments; results go to a folder, as with `preselect study`, from which they are resumed.

    The command with the same arguments writes the same files, apart from measured times.

    Parameters
    ----------
    environments : setting, class or str, or several of one kind
        Settings of a study of this library, such as `SyntheticSetting(20, 5, 3)`; or environments of your own, each a
        class, or module:Class, with parameters as in "routes:Routes(n=20)".
    policies : str or class, or several, optional
        Names as in "newton(beta=1)", also in one text with commas between, or classes derived from `preselect.Policy`;
        the first is compared with the others. By default those of the study.
    k : int or several
        How many arms to choose; for environments of your own only. Settings of this library say it themselves.
    out : str or path, optional
        Folder for the results; by default results/ and the name of the command, as in results/synthetic.
    workers : int, default -1
        Processes; -1 for one per core, 1 for this one. Results do not depend on it.
    cluster : str, optional
        Address of a Dask scheduler, on whose workers to run instead.
    report : callable, optional
        Called as `report(done, total, task)` when a block is finished.
    **parameters : Any
        Further parameters of the study's plan, such as repetitions, horizon and seed.
    """
    if workers != -1:
        integer(workers, "workers", 1)
    if cluster is not None and not isinstance(cluster, str):
        raise InputError(f"cluster is {show(cluster)}; use the address of a Dask scheduler, as in tcp://host:8786")
    plan = _make_plan(environments, policies, k, parameters)
    study = Study.create(Path("results", plan.kind) if out is None else out, plan)
    study.compute(plan, workers=workers, cluster=cluster, report=report)
    return study


def _make_plan(environments: Any, policies: Any, k: Any, parameters: dict[str, Any]) -> Plan:
    settings = _list_settings(environments, k)
    kinds = {type(setting) for setting in settings}
    if len(kinds) != 1:
        raise InputError("environments are of different kinds; run a study for each kind")
    plan_type = find_plan_type(kinds.pop())
    known = [field.name for field in fields(plan_type) if field.name not in ("settings", "policies")]
    strange = [name for name in parameters if name not in known]
    if strange:
        raise InputError(f"{plan_type.__name__} has no parameter {', '.join(strange)}; it has {', '.join(known)}")
    if policies is not None:
        parameters = {**parameters, "policies": _list_policies(policies)}
    plain = (plan_type.normalise(plan_type.make_plain(setting)) for setting in settings)
    return plan_type(settings=tuple(dict.fromkeys(plain)), **parameters)


def _list_settings(environments: Any, k: Any) -> tuple[Setting, ...]:
    given = [*environments] if _is_several(environments) and not _is_setting(environments) else [environments]
    if not given:
        raise InputError("environments is empty; give at least one")
    if all(map(_is_setting, given)):
        if k is not None:
            raise InputError(f"k is {show(k)}, but the settings say already how many arms to choose; drop one of them")
        return tuple(given)
    if any(map(_is_setting, given)):
        raise InputError("environments are of different kinds; run a study for each kind")
    if k is None:
        raise InputError("k is missing: how many arms to choose in the rounds of an environment of your own")
    names = [one if isinstance(one, str) else name_class(_expect_class(one)) for one in given]
    several = [*k] if _is_several(k) else [k]
    if not several:
        raise InputError("k is empty; give at least one number of arms to choose")
    return tuple(OwnSetting(name, one) for name in names for one in several)


def _is_several(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, type))


def _is_setting(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _expect_class(value: Any) -> type:
    if not isinstance(value, type):
        raise InputError(f"{show(value)} is neither a setting nor a class of environments, nor written as module:Class")
    return value


def _list_policies(policies: Any) -> tuple[str, ...]:
    if isinstance(policies, str):
        return tuple(dict.fromkeys(registry.split(policies)))
    given = list(policies) if _is_several(policies) else [policies]
    return tuple(dict.fromkeys(name_class(one) if isinstance(one, type) else _expect_name(one) for one in given))


def _expect_name(value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{show(value)} is neither the name of a policy nor a class derived from preselect.Policy")
    return value


def _make_frame(rows: list[dict[str, Any]], columns: list[str] | None = None) -> _Frame:
    import pandas

    return pandas.DataFrame(rows, columns=columns)
