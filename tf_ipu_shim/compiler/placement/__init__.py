"""Assigns ops to locations and phases; decides which ops are cloned or kept out of XLA programs."""
