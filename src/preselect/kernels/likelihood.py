"""The Plackett-Luce likelihood of one outcome, for callers in Python."""

from preselect.compiling import entry
from preselect.kernels import plackett_luce

rank_rows = entry(plackett_luce.rank_rows)
utilities = entry(plackett_luce.utilities)
stage_probabilities = entry(plackett_luce.stage_probabilities)
log_likelihood = entry(plackett_luce.log_likelihood)
differentiate = entry(plackett_luce.differentiate)
