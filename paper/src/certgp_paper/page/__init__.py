"""The page docs/reproduction.md, made from results."""
