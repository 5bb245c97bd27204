"""Jobs of several processes: which process this one is, how they find each other, and what they exchange."""
