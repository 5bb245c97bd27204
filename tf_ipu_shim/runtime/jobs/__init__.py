"""Jobs of several processes: this process's rank, rendezvous, connections and collectives."""
