"""What programs take from the host while they run, and what they send there."""
