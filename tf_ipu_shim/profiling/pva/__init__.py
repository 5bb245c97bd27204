"""libpva's object model over this package's profiles, as `pva.openReport` returns it.

target        the machine that a program was compiled for
program       programs and compute sets
memory        tiles, variables, liveness steps
compilation   all of these of one program
execution     its runs and their steps
report        a profile that was opened
refusing      members of libpva that these profiles lack
"""
