"""Formats errors for users: message, script line, and what to do."""
