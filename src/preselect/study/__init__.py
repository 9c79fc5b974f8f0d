"""Run policies on environments: plans, results on disk, tables, figures and a report.

>>> from preselect.study import SyntheticSetting, run
>>> study = run(SyntheticSetting(20, 5, 3), ["newton", "cppl"], repetitions=30, out="results")  # doctest: +SKIP
>>> study.compare()  # doctest: +SKIP
>>> study.plot()  # doctest: +SKIP

`Study.open` opens the results of a study again, also those of the command.
"""

from preselect.study.aslib import AslibPlan, AslibSetting
from preselect.study.choices import ChoicesPlan, ChoicesSetting
from preselect.study.coverage import CoveragePlan
from preselect.study.figures import write_figures
from preselect.study.own import OwnPlan, OwnSetting
from preselect.study.plan import Measure, Plan, SettingData
from preselect.study.report import write_report
from preselect.study.results import Results
from preselect.study.runner import compute
from preselect.study.saps import SapsPlan, SapsSetting
from preselect.study.statistics import PairedComparison, Summary
from preselect.study.study import Study, run
from preselect.study.synthetic import SyntheticPlan, SyntheticSetting

__all__ = [
    "AslibPlan",
    "AslibSetting",
    "ChoicesPlan",
    "ChoicesSetting",
    "CoveragePlan",
    "Measure",
    "OwnPlan",
    "OwnSetting",
    "PairedComparison",
    "Plan",
    "Results",
    "SapsPlan",
    "SapsSetting",
    "SettingData",
    "Study",
    "Summary",
    "SyntheticPlan",
    "SyntheticSetting",
    "compute",
    "run",
    "write_figures",
    "write_report",
]
