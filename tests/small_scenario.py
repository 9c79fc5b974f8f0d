"""The files of a small ASlib scenario, which tests replace one by one."""

DESCRIPTION = """\
scenario_id: SMALL
performance_measures:
- runtime
maximize:
- false
performance_type:
- runtime
algorithm_cutoff_time: 60
default_steps:
- cheap
feature_steps:
  cheap:
    provides:
    - size
  dear:
    provides:
    - depth
    requires:
    - cheap
"""

RUNS = """\
@RELATION runs

@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE algorithm STRING
@ATTRIBUTE runtime NUMERIC
@ATTRIBUTE runstatus {ok, timeout}

@DATA
one,1,a,3.5,ok
one,1,b,60,timeout
two,1,a,60,timeout
two,1,b,60,timeout
three,1,a,20,ok
three,1,b,10,ok
"""

FEATURES = """\
@RELATION features
@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE size NUMERIC
@ATTRIBUTE depth NUMERIC
@DATA
one,1,1,10
two,1,2,?
three,1,3,30
"""

COSTS = """\
@RELATION costs
@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@ATTRIBUTE cheap NUMERIC
@ATTRIBUTE dear NUMERIC
@DATA
one,1,0.5,2
three,1,0.25,?
"""


def make_runs(rows, measures=("runtime",)):
    """The file of runs: (instance, repetition, algorithm, measures..., status)."""
    attributes = "\n".join(f"@ATTRIBUTE {measure} NUMERIC" for measure in measures)
    head = RUNS.split("@ATTRIBUTE runtime NUMERIC")[0] + attributes + "\n@ATTRIBUTE runstatus STRING\n@DATA\n"
    return head + "\n".join(",".join(map(str, row)) for row in rows)
