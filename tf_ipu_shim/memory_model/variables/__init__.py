"""Models where variables, stashes and feeds are stored: tiles, I/O tiles or Streaming Memory, whole or sharded."""
