"""The graph representation that compiler passes share, and properties of op types and attributes."""
