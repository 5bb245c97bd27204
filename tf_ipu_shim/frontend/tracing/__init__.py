"""Python functions become functions of the plugin's programs."""
