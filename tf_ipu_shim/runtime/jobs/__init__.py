"""Jobs of several processes: detection, connections, collectives and each process's replicas."""
