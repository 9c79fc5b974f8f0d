"""The compiled inner loops: arrays in, arrays out, float64 arithmetic, no Python objects.

Conventions. `X` is n x d (float64 or float32). `numbers` is the block of a decision: k scores, k widths, then the k
selected rows of X. `rows` are these rows as a k x d array, `ranked` the same in the order of the outcome: the m arms
that were ranked, best first, then the k - m others. A winner is a ranking with m = 1.
A kernel that changes a state computes first and commits last, and answers whether it did: a learner that meets a
number that is not finite stays exactly as it was.
"""
