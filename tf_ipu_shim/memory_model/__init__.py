"""Models the memory that a lowered program needs on each IPU, and the computation of each step.

`memory_plan` makes the plan of a program, records it and raises out of memory; `bug_report` warns of a bug in it.
"""
