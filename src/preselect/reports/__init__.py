"""Shared parts of reports: self-contained pages from templates, figures, tables of weights."""

from preselect.reports.html import Cell, render, write_page
from preselect.reports.weights import Weights, read_weights

__all__ = ["Cell", "Weights", "read_weights", "render", "write_page"]
