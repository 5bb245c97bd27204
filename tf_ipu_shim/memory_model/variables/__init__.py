"""Chooses the storage of variables and stashes: tiles, Streaming Memory, whole or sharded over replicas."""
