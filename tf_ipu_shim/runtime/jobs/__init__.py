"""Jobs of several processes.

job          ranks and addresses, from the variables of the launcher
instances    the distribution of replicas over processes
rendezvous   how the processes on one machine find each other
connections  connects and authenticates processes
peers        exchanges arrays over these connections
collectives  the operations of scripts, such as a sum over processes
waits        the waits of each process, to explain a time-out
"""
