"""The paper's examples and simulated problems with a known truth, one file each; ``certgp.report`` draws them."""
