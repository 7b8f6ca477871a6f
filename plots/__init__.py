"""Figures, report and generated documentation blocks, all from the harness's CSV files."""
