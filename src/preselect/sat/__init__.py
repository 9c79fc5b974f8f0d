"""Satisfiability: formulas, their features, a solver and instances."""
