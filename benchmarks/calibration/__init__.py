"""Runs the memory and cycle models on programs whose figures are published, and fits the error bars.

rows     the published figures, from validation/model/published.csv
models   runs `tf-ipu fit` on a row's program
bars     error bars by regime, from the ratios
report   the tables that are printed
"""
