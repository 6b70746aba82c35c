"""The paper's tables and figures, computed again cell by cell; ``catalogue`` has them by name."""
