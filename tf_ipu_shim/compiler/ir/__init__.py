"""The graph representation that compiler passes share, and facts about op types and attributes."""
