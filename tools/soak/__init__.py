"""Runs random programs for hours and checks their results, for which the tests have no time.

`make soak` runs it; `PYTHONPATH=tools python -m soak --help` lists the options.
"""
