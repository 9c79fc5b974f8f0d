"""Satisfiability (SAT): formulas and their features, the solver SAPS, colouring instances, and tables of run times.

>>> from preselect.sat import Colouring, compute_features, solve
>>> formula = Colouring(vertices=30, ratio=0.25, seed=1).formula()
>>> compute_features(formula).values["nclauses"], solve(formula, seed=0).solved
(1380.0, True)
"""

from preselect.sat.colouring import Colouring
from preselect.sat.dimacs import Formula, parse_formula, read_formula, write_formula
from preselect.sat.features import FEATURE_NAMES, FormulaFeatures, compute_features
from preselect.sat.parametrizations import EFFECTIVE, PARAMETER_NAMES, PRINTED, convert_printed
from preselect.sat.preprocessing import eliminate_variables, tidy
from preselect.sat.runtimes import RunTime, measure_runtimes, read_runtimes
from preselect.sat.saps import DEFAULT, Parameters, Search, SearchResult, is_model, solve

__all__ = [
    "DEFAULT",
    "EFFECTIVE",
    "FEATURE_NAMES",
    "PARAMETER_NAMES",
    "PRINTED",
    "Colouring",
    "Formula",
    "FormulaFeatures",
    "Parameters",
    "RunTime",
    "Search",
    "SearchResult",
    "compute_features",
    "convert_printed",
    "eliminate_variables",
    "is_model",
    "measure_runtimes",
    "parse_formula",
    "read_formula",
    "read_runtimes",
    "solve",
    "tidy",
    "write_formula",
]
