"""Scenarios of ASlib, the algorithm selection library: what every algorithm did on every instance."""

from preselect.environments.aslib.scenario import Scenario, par10

__all__ = ["Scenario", "par10"]
