"""A user's own ops: functions of shared libraries for the host, and emulations of codelets."""
