"""Where ops run: locations, phases, and what is cloned or taken out of XLA programs."""
