"""Runs one instance of a job on another host, for the `poprun` that started this process there.

    python -m tf_ipu_shim.cli.poprun.agent HOST IPUS INSTANCES

It prints one line of JSON, a `Greeting`, and reads one, an `Order`, from its standard input: secrets are on no command
line. When that input ends, the instance is ended, so that none outlives its `poprun`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import tf_ipu_shim
from tf_ipu_shim.cli.poprun import process_tree
from tf_ipu_shim.cli.poprun.agent_messages import GREETING, Greeting, Order
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.sharing import attach
from tf_ipu_shim.runtime.jobs import rendezvous


def main(arguments: Sequence[str]) -> int:
    """Greets, runs the program that `poprun` names, and returns its status."""
    host, ipus, instances = arguments[0], int(arguments[1]), int(arguments[2])
    (address,) = rendezvous.free_addresses([host])
    greeting = Greeting(tf_ipu_shim.__version__, address, attach.first_free(systems.current(), ipus, instances))
    print(GREETING + json.dumps(dataclasses.asdict(greeting)), flush=True)
    line = sys.stdin.readline()
    if not line:  # there is nothing to start
        return 0
    order = Order(**json.loads(line))
    try:
        process = subprocess.Popen(
            list(order.command),
            cwd=order.directory,
            env={**os.environ, **order.environment},
            stdin=subprocess.DEVNULL,
            text=True,
            preexec_fn=process_tree.end_with_parent(),
        )
    except OSError as error:
        print(f"{host}: {order.command[0]} cannot be started in {order.directory}: {error}.", file=sys.stderr)
        return 127
    ending = threading.Lock()  # the end of the input and signals come together: who takes it ends the program
    watcher = threading.Thread(target=_end_with_input, args=(process, ending), daemon=True)
    watcher.start()

    def exit_once(signal_number: int, _: Any) -> None:
        if ending.acquire(blocking=False):
            raise SystemExit(128 + signal_number)

    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, exit_once)
    try:
        status = process.wait()
    except SystemExit:
        process_tree.terminate([process])
        raise
    if ending.locked():  # only the watcher knows what the program had started
        watcher.join()
    return status if status >= 0 else 128 - status


def _end_with_input(process: subprocess.Popen[str], ending: threading.Lock) -> None:
    while sys.stdin.readline():
        pass
    if ending.acquire(blocking=False):
        process_tree.terminate([process])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
