"""What reports and pages share: templates, figures, tables of weights."""
