"""What environment variables ask of the simulated machine, and what each option that they hold changes."""
