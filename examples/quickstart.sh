#!/bin/sh
# The `runnel` command in one minute: a broker, a topic, records, a group, what is on the disk.
#
#     sh examples/quickstart.sh
#
# Everything here works against Apache Kafka too, but for `runnel serve` and `runnel storage`.
# It prints (the tests compare it):
#
#     > runnel topic create orders --partitions 3
#     created orders with 3 partitions
#     > runnel produce orders --key-separator :
#     > runnel consume orders --format '%k wants %v\n' | sort
#     table 4 wants cake
#     table 4 wants tea
#     table 7 wants soup
#     > runnel consume orders --group kitchen --count 2
#     ...
#     > runnel group describe kitchen
#     ...
#     total lag    1
#     ...
#     > runnel topic alter orders --config retention.ms=3600000
#     altered orders: retention.ms=3600000
#     > runnel storage verify runnel-data orders
#     no findings: 3 partitions, 3 segments, 2 batches, 3 records, ...
#     > runnel topic delete orders --yes
#     deleted orders
set -eu

# A broker of this script's own, so that it meets nobody else's orders: port 0 takes a free port,
# and the ready file tells which. `runnel serve` alone listens on localhost:9092.
repository=$(cd "$(dirname "$0")/.." && pwd)
PATH="$PATH:$repository/.venv/bin" # where `make setup` puts the command
folder=$(mktemp -d)
cd "$folder"
runnel serve --port 0 --data-dir runnel-data --ready-file ready.json --log-level warning &
broker=$!
trap 'kill $broker; wait $broker; rm -r "$folder"' EXIT
until [ -e ready.json ]; do
    kill -0 $broker # the script ends here if the broker could not start: it has said why
    sleep 0.1
done
RUNNEL_BOOTSTRAP_SERVER=$(sed 's/.*"kafka": \["\([^"]*\)".*/\1/' ready.json)
export RUNNEL_BOOTSTRAP_SERVER # every command below finds the broker here

show() { # prints a command, then runs it
    printf '> %s\n' "$1"
    eval "$1"
}

show "runnel topic create orders --partitions 3"

# Records with the same key go to the same partition, so the orders of a table keep their order.
printf 'table 4:tea\ntable 7:soup\ntable 4:cake\n' > orders.txt
show "runnel produce orders --key-separator :" < orders.txt

# Without a group: everything, and nobody is disturbed.
show "runnel consume orders --format '%k wants %v\n' | sort"

# With a group the broker remembers how far it came. One order is left: the lag.
show "runnel consume orders --group kitchen --count 2"
show "runnel group describe kitchen"

# Keep orders for an hour; the change holds at once. Then look at the files, as the broker runs.
show "runnel topic alter orders --config retention.ms=3600000"
show "runnel storage verify runnel-data orders"
show "runnel topic delete orders --yes"
