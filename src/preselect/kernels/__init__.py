"""The compiled inner loops: arrays in, arrays out, float64 arithmetic, no Python objects.

Conventions. `X` is n x d (float64 or float32). `bounds` holds the k scores of the selected arms, then their k widths;
`rows` their rows of X, k x d; `ranked` the same rows in the order of the outcome: the m arms that were ranked, best
first, then the k - m others. A winner is a ranking with m = 1.
A kernel that changes a state computes first and commits last, and returns whether it did: a learner that meets a
number that is not finite stays exactly as it was.

Kernels are what Python calls; they share the helpers in `algebra` and `plackett_luce`, which only compiled code may
call. A change in any file of this folder compiles all kernels again (see `preselect.compiling`). What not every round
needs is a separate kernel, because the first round has to wait until its kernels are compiled. Numbers of equations are
those printed in the paper.
"""
