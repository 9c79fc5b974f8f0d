"""Run policies on environments: plan, play, results on disk, figures and report."""
