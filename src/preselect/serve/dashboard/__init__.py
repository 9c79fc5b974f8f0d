"""The pages of the service: what its preselectors do, live, and why."""
