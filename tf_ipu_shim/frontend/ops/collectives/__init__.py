"""Values of all replicas, or of the IPUs of one: combined, gathered, scattered."""
