"""The Plackett-Luce likelihood of one outcome, for callers in Python."""

from preselect.compiling import entry
from preselect.kernels import plackett_luce

rank_rows = entry(plackett_luce.rank_rows)
utilities = entry(plackett_luce.utilities)
stage_normalisers = entry(plackett_luce.stage_normalisers)
stage_probabilities = entry(plackett_luce.stage_probabilities)
gradient = entry(plackett_luce.gradient)
curvature_factor = entry(plackett_luce.curvature_factor)
