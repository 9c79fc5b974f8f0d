"""The dashboard: pages that show live what preselectors do, and why."""
