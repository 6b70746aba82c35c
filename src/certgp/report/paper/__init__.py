"""Drawings of the paper's tables and figures, one module each, from the rows that an experiment yields."""
