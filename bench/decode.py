"""How many records of 100 bytes a second the decoder turns into columns: one JSON line per case.

    python bench/decode.py

Keys are absent and values are copied. The time is processor time, the best of several rounds
over about 4 MiB of batches, as one fetch brings them.
"""

import json
import random
import time

from runnel.native import records
from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode

VALUE_BYTES = 100
DATA_BYTES = 4 << 20
ROUNDS = 40
NO_LIMIT = 1 << 30


def measure(codec: Compression, records_per_batch: int, verify_crc: bool) -> None:
    chance = random.Random(1)
    made = [
        Record(None, chance.randbytes(VALUE_BYTES // 2).hex().encode(), 1_700_000_000_000 + index)
        for index in range(records_per_batch)
    ]
    batch = encode(made, codec=codec)
    uncompressed = records_per_batch * (VALUE_BYTES + 10)
    data = bytes(batch) * max(1, DATA_BYTES // uncompressed)
    best_s, count = float("inf"), 0
    for _ in range(ROUNDS):
        start = time.process_time()
        columns = records.decode(
            data, max_records=NO_LIMIT, max_bytes=NO_LIMIT, verify_crc=verify_crc
        )
        best_s = min(best_s, time.process_time() - start)
        count = columns.row_count
    result = {
        "compiled": records.COMPILED,
        "codec": codec.name.lower(),
        "records_per_batch": records_per_batch,
        "verify_crc": verify_crc,
        "million_records_per_s": round(count / best_s / 1e6, 2),
    }
    print(json.dumps(result))


def main() -> None:
    for records_per_batch in (10_000, 1_000, 100, 1):
        measure(Compression.NONE, records_per_batch, verify_crc=True)
    measure(Compression.NONE, 10_000, verify_crc=False)
    for codec in Compression:
        if codec is not Compression.NONE:
            measure(codec, 1_000, verify_crc=True)


if __name__ == "__main__":
    main()
