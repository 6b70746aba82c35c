"""Training as the paper does it."""
