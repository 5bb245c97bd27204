"""Tools around Python's import system: what is done after a module is loaded, aliases of modules, who imports."""
