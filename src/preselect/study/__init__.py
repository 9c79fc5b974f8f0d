"""Run policies on environments: plans, results on disk, tables, figures and a report.

>>> from preselect.study import Results, SyntheticPlan, SyntheticSetting, run, write_report
>>> plan = SyntheticPlan(settings=(SyntheticSetting(20, 5, 3),), policies=("newton", "cppl"), repetitions=30)
>>> results = Results.create(folder, plan)  # doctest: +SKIP
>>> run(results, plan)  # doctest: +SKIP
>>> results.summarise("best_arm")  # doctest: +SKIP
>>> write_report(results)  # doctest: +SKIP
"""

from preselect.study.aslib import AslibPlan, AslibSetting
from preselect.study.figures import write_figures
from preselect.study.plan import Measure, Plan, SettingData
from preselect.study.report import write_report
from preselect.study.results import Results
from preselect.study.runner import run
from preselect.study.saps import SapsPlan, SapsSetting
from preselect.study.statistics import PairedComparison, Summary
from preselect.study.synthetic import SyntheticPlan, SyntheticSetting

__all__ = [
    "AslibPlan",
    "AslibSetting",
    "Measure",
    "PairedComparison",
    "Plan",
    "Results",
    "SapsPlan",
    "SapsSetting",
    "SettingData",
    "Summary",
    "SyntheticPlan",
    "SyntheticSetting",
    "run",
    "write_figures",
    "write_report",
]
