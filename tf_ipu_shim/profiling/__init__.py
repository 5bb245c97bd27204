"""Profiles of programs in files: cycles and memory of each op and IPU. Never imports TensorFlow.

settings       requests in `POPLAR_ENGINE_OPTIONS` and the like, and their paths
profile        a program's profile as records
collect        a program's blocks and plan as such records
writer         records into a file
reader         a file as records, and the runs that were counted next to it
timeline_layout  the events of a profile in time, for the next two
trace          a profile for Chrome and Perfetto
page           a profile as a page of HTML; page.html is its frame
pva            libpva's object model over it
event_reports  its part in the trace events of SDKs up to 2.3

`docs/reference/profile_format.md` describes the file.
"""
