"""Commands that this package adds to ``certgp``."""
