"""Messages between the instances of a job: connected sockets, the plugin's threads that send and take."""

import concurrent.futures
import hashlib
import socket
import threading
import time

import pytest

from tf_ipu_shim import plugin
from tf_ipu_shim.runtime import meeting_place, peer_sockets


def connected(size, seconds=60.0):
    """The links of `size` ranks, all in this process, and one end of each connection by rank and other rank."""
    sockets = [[-1] * size for _ in range(size)]
    for one in range(size):
        for other in range(one):
            ends = socket.socketpair()
            sockets[one][other], sockets[other][one] = (end.detach() for end in ends)
    addresses = [f"place:{rank}" for rank in range(size)]
    library = plugin.load()
    return [library.connect_instances(rank, sockets[rank], addresses, seconds) for rank in range(size)]


def all_of(links, name, messages):
    with concurrent.futures.ThreadPoolExecutor(len(links)) as pool:
        return list(pool.map(lambda one, message: one.gather(name, f"sum of {name}", message), links, messages))


@pytest.mark.parametrize("size", [2, 4])
def test_every_rank_gets_what_all_others_give(size):
    links = connected(size)
    for number in range(3):
        # Of different lengths, an empty one among them, and longer than what a socket takes at once.
        messages = [hashlib.sha256(b"%d %d" % (number, rank)).digest() * (rank * 100_000) for rank in range(size)]
        for rank, (given, problem) in enumerate(all_of(links, "a", messages)):
            assert not problem
            assert given == [b"" if other == rank else message for other, message in enumerate(messages)]


def test_operations_begin_in_any_order_and_those_of_one_name_follow_each_other():
    links = connected(2)
    names = [f"name {number % 5}" for number in range(60)]
    results = [{}, {}]

    def call(rank, name, at, before):
        if before is not None:
            before.result()
        given, problem = links[rank].gather(name, name, f"{name} {at} {rank}".encode())
        assert not problem
        results[rank][name, at] = given[1 - rank].decode()

    with concurrent.futures.ThreadPoolExecutor(2 * len(names)) as pool:
        calls = []
        for rank in range(2):
            latest = {}
            for name in sorted(set(names), reverse=bool(rank)):
                for at in range(names.count(name)):
                    latest[name] = pool.submit(call, rank, name, at, latest.get(name))
                    calls.append(latest[name])
        for one in calls:
            one.result(60)
    for rank in range(2):
        assert results[rank] == {(name, at): f"{name} {at} {1 - rank}" for name, at in results[rank]}
        assert len(results[rank]) == len(names)


def test_who_does_not_come_is_named_with_what_it_came_to_last():
    first, second, third = connected(3, seconds=1.0)
    all_of([first, second, third], "start", [b"", b"", b""])
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        late = list(pool.map(lambda one: one.gather("late", "sum of late", b"x")[1], [first, third]))
    assert time.monotonic() - begun >= 1.0
    for rank, problem in zip((0, 2), late):
        # The other may have been told first, and takes no more messages then: it did come.
        assert f"sum of late in the process of rank {rank}: not all 3 processes came to it within 1 s" in problem
        assert "That of rank 1 did not; it came last to sum of start, " in problem
        assert f"rank {2 - rank} did not" not in problem
    assert first.gather("next", "sum of next", b"")[1] == late[0], "the processes are not at the same place any more"


def test_the_end_of_a_process_is_told_to_those_that_wait_and_to_those_that_come_later():
    ours, theirs = socket.socketpair()
    (links,) = [plugin.load().connect_instances(0, [-1, ours.detach()], ["here", "there"], 60.0)]
    ending = threading.Timer(0.3, theirs.close)
    ending.start()
    begun = time.monotonic()
    for name in ("gone", "later"):
        given, problem = links.gather(name, f"sum of {name}", bytes(10_000_000))  # more than the socket takes
        assert not given and problem.startswith(f"Collective operation sum of {name}: The process of rank 1 has ended")
        assert "there any more" in problem
    assert time.monotonic() - begun < 30
    ending.join()


def test_what_was_given_before_a_process_ended_counts():
    first, second = connected(2)
    message = bytes(range(256)) * 40_000
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(second.gather, "last", "sum of last", message)
        assert first.gather("last", "sum of last", b"ours")[0] == [b"", message]
        assert theirs.result(60)[0] == [b"ours", b""]
    second.end()
    assert "rank 1 has ended" in first.gather("more", "sum of more", b"")[1]


def test_strangers_at_the_port_are_sent_away():
    addresses = meeting_place.free_addresses(["127.0.0.1"] * 3)
    listener = peer_sockets.listen(addresses[0])
    host, port = addresses[0].split(":")
    silent, wrong = (socket.create_connection((host, int(port))) for _ in range(2))
    wrong.sendall(bytes(36))
    silent.close()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        found = [
            pool.submit(
                peer_sockets.connect,
                listener if not rank else peer_sockets.listen(addresses[rank]),
                rank,
                addresses,
                30,
            )
            for rank in range(3)
        ]
        found = [one.result() for one in found]
    for rank in range(3):
        assert [one is None for one in found[rank]] == [other == rank for other in range(3)]
        for other in range(rank):
            found[rank][other].sendall(b"%d%d" % (rank, other))
            assert found[other][rank].recv(2) == b"%d%d" % (rank, other)
    wrong.settimeout(30)
    assert wrong.recv(1) == b"", "it was let in"
    for one in (wrong, *filter(None, sum(found, []))):
        one.close()


def test_processes_that_do_not_come_are_named():
    addresses = meeting_place.free_addresses(["127.0.0.1"] * 3)
    with pytest.raises(peer_sockets.NotFoundError) as caught:
        peer_sockets.connect(peer_sockets.listen(addresses[0]), 0, addresses, 0.2)
    assert caught.value.ranks == [1, 2]
    with pytest.raises(peer_sockets.NotFoundError) as caught:
        peer_sockets.connect(peer_sockets.listen(addresses[2]), 2, addresses, 0.2)
    assert caught.value.ranks == [0]
