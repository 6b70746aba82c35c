"""Training on the exact objective and gradient of all rows: L-BFGS in stages, and trials of several starts."""
