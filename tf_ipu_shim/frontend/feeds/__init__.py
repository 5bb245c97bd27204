"""Infeeds and outfeeds: data that running programs receive from the host or send to it."""
