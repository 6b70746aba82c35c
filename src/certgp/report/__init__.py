"""Pictures of results. The only room that knows matplotlib; results come by their attributes, not by import."""
