"""The representation that passes share: functions as graphs, names of ops and attributes, facts about ops."""
