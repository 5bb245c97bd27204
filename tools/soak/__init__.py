"""Hours of random work that has to come out right: what the tests have no time for.

`make soak` runs it; `PYTHONPATH=tools python -m soak --help` says what there is.
"""
