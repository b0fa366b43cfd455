"""Work queue: the workers of a group share the jobs; each is done by one of them, and none is lost.

The group gives each partition to one worker, so there can be as many workers as partitions. When a
worker ends or crashes, the others take its partitions over and go on where it had committed.

It prints:

    40 jobs by 2 workers: each job was done once, and both workers had some
    worker 2 has gone home: 40 more jobs, each done once, all by worker 1
"""

import threading
from collections import Counter

from a_broker import a_broker, new_topic

from runnel.client import Consumer, ConsumerConfig, Producer, ProducerConfig

TOPIC = "examples.jobs"


class Worker(threading.Thread):
    """Usually each is a process of its own, on any machine; here they are threads."""

    def __init__(self, servers: str, name: str) -> None:
        super().__init__(name=name)
        config = ConsumerConfig(servers, group_id="examples.workers", client_id=name)
        self.consumer = Consumer(config)
        self.jobs: list[str] = []

    def run(self) -> None:
        with self.consumer as consumer:  # the end commits what was done, and leaves the group
            consumer.subscribe(TOPIC)
            for message in consumer:
                self.jobs.append(message.text)  # the work

    def stop(self) -> None:
        self.consumer.stop()
        self.join()


def send(producer: Producer, numbers: range) -> None:
    for number in numbers:  # the key spreads them over the partitions
        producer.send(TOPIC, f"job {number}", key=str(number))
    producer.flush()


def await_jobs(count: int, *workers: Worker) -> Counter[str]:
    while sum(len(worker.jobs) for worker in workers) < count:
        workers[0].join(0.05)
    return Counter(job for worker in workers for job in worker.jobs)


with a_broker() as servers, Producer(ProducerConfig(servers)) as producer:
    new_topic(servers, TOPIC, partitions=4)
    one, two = Worker(servers, "worker 1"), Worker(servers, "worker 2")
    one.start()
    two.start()
    while not (one.consumer.assignment() and two.consumer.assignment()):
        one.join(0.05)  # until the group has shared its partitions out

    send(producer, range(40))
    assert set(await_jobs(40, one, two).values()) == {1} and one.jobs and two.jobs
    print("40 jobs by 2 workers: each job was done once, and both workers had some")

    two.stop()
    send(producer, range(40, 80))
    assert set(await_jobs(80, one, two).values()) == {1}
    print("worker 2 has gone home: 40 more jobs, each done once, all by worker 1")
    one.stop()
