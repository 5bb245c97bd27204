"""Detects and connects the processes of a job, runs their collectives and divides replicas among them."""
