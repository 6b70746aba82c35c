"""Pictures of results. The only room that knows matplotlib; it takes results by their shape and imports no experiment."""
