"""certgp-paper: the paper's experiments, figures, baselines and data sets, beside the library certgp."""
