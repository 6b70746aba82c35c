"""The paper's examples and simulated problems with a known truth, one file each; plots of them are in ``certgp.report``."""
