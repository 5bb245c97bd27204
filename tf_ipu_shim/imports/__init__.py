"""Import-system helpers: post-import hooks, module aliases, detection of the importing code."""
