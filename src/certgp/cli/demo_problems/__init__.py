"""The two problems of ``certgp demo``: simulated, with a known truth."""
