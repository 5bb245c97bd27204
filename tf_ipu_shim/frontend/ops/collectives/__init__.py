"""Collectives between replicas, and between the IPUs of one replica."""
