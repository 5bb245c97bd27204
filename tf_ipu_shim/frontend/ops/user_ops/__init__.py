"""Custom ops: host functions of shared libraries, and emulations of codelets."""
