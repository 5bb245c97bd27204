"""Replicates programs: counts replicas, specialises their functions and shares batch-norm statistics."""
