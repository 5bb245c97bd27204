"""Replicates programs: their number, replica-specific functions and shared batch-norm statistics."""
