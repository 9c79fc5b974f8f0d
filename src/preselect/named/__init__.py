"""The parts of `Preselector`, in which arms and features have names.

Its base classes are in `state` (what it knows), `arms` (arms join, change and leave) and `readable_state` (estimates
and explanations); `preselect.preselector` adds choosing and learning. Below them, `roster` knows the slot, group and
price of every arm; `values` reads features and `feedback` outcomes; `decision`, `estimates` and `explanations` hold the
values that callers get.
"""
