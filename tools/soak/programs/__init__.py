"""Programs that are made at random, one kind a file."""
