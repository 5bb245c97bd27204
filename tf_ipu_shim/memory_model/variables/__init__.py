"""Decides where variables and stashes are stored: tiles, remote memory, whole or sharded over replicas."""
