"""Errors that users see: what they say, which line of the script they name, and what to do about them."""
