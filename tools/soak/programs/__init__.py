"""Random programs, one file for each kind."""
