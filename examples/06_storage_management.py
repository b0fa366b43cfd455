"""What lies on the disk: look into it, keep only the newest record of each key, delete.

The data folder has Kafka's own log format. `runnel storage` reads it with the broker up or down;
it takes no lock and never writes.

It prints:

    > runnel topic create addresses --config segment.ms=3600000
    created addresses with 1 partition
    > runnel produce addresses --key-separator : --null - --timestamp -1d
    > runnel storage analyze DATA addresses
    messages         302
    ...
    > runnel produce addresses --key-separator :
    > runnel topic alter addresses --config cleanup.policy=compact
    altered addresses: cleanup.policy=compact
    > runnel consume addresses --format '%o %k: %v\\n'
    298 grace: Boston 99
    300 ada: London
    301 linus: NULL
    302 barbara: Cambridge
    > runnel storage verify DATA
    no findings: 1 partition, 2 segments, 2 batches, 4 records, ...
    > runnel topic delete addresses --yes
    deleted addresses
"""

import os
import shlex
import subprocess
import sys
import time

from runnel.testing import RunnelBroker


def runnel(command: str, given: str = "") -> None:
    """Show a command and run it, as you would type it in a shell."""
    print("> runnel", command.replace(data_dir, "DATA"), flush=True)
    arguments = [sys.executable, "-m", "runnel", *shlex.split(command)]
    environ = {**os.environ, "RUNNEL_BOOTSTRAP_SERVER": broker.bootstrap_servers}
    subprocess.run(arguments, env=environ, input=given, text=True, check=True)


# Without this setting the broker looks every 15 s for logs to compact.
with RunnelBroker({"log.cleaner.backoff.ms": 100}) as broker:
    data_dir = str(broker.data_dir)
    runnel("topic create addresses --config segment.ms=3600000")

    # Yesterday three people moved a hundred times. A value of null, a tombstone, deletes its key.
    moves = [
        f"{person}:{city} {n}"
        for n in range(100)
        for person, city in (("ada", "Paris"), ("grace", "Boston"), ("linus", "Oslo"))
    ]
    moves += ["ada:London", "linus:-"]
    runnel("produce addresses --key-separator : --null - --timestamp -1d", "\n".join(moves))
    runnel(f"storage analyze {data_dir} addresses")

    # The first record of another hour begins a new file. Closed files are compacted; offsets stay
    # what they were. Tombstones go after delete.retention.ms, so that every consumer sees them.
    runnel("produce addresses --key-separator :", "barbara:Cambridge")
    runnel("topic alter addresses --config cleanup.policy=compact")
    while "cleaned addresses-0" not in broker.logs:
        time.sleep(0.1)
    runnel("consume addresses --format '%o %k: %v\\n'")
    runnel(f"storage verify {data_dir}")
    runnel("topic delete addresses --yes")
