"""Draw docs/img/top.svg: `runnel top` beside a broker that real clients use for a while."""

import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer
from rich.console import Console

from runnel.cli.exposition import parse
from runnel.cli.scraping import scrape_text
from runnel.cli.top_model import WANTED, TopModel
from runnel.cli.top_view import Showing, draw
from runnel.testing import RunnelBroker

TARGET = Path(__file__).resolve().parents[1] / "docs/img/top.svg"
COLUMNS, LINES = 120, 25
SECONDS = 70  # a lag that grows for a minute is warned of
TOPICS = {"orders": 900, "payments": 400, "clicks": 2500, "audit": 60}  # records a second
GROUPS = {"billing": ("orders", 1.0), "fraud": ("payments", 1.0), "reports": ("clicks", 0.8)}


def produce(bootstrap: str, topic: str, rate: int, stop: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    tick = 0
    while not stop.wait(0.05):
        tick += 1
        swell = 1.0 + 0.6 * ((tick // 40) % 3)  # so that there is something to see
        for number in range(int(rate * swell / 20)):
            producer.produce(topic, b"x" * 500, key=str(number).encode())
        producer.poll(0)
    producer.flush(10)


def consume(bootstrap: str, group: str, topic: str, share: float, stop: threading.Event) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
        }
    )
    consumer.subscribe([topic])
    while not stop.is_set():
        for message in consumer.consume(500, 0.2):
            assert message.error() is None
        time.sleep(0.02 if share == 1.0 else 0.35)
    consumer.close()


def main() -> None:
    stop = threading.Event()
    model = TopModel()
    with RunnelBroker(metrics=True) as broker:
        for topic in TOPICS:
            broker.create_topic(topic, partitions=3)
        threads = [
            threading.Thread(target=produce, args=(broker.bootstrap_servers, topic, rate, stop))
            for topic, rate in TOPICS.items()
        ]
        threads += [
            threading.Thread(target=consume, args=(broker.bootstrap_servers, group, *what, stop))
            for group, what in GROUPS.items()
        ]
        for thread in threads:
            thread.start()
        for _ in range(SECONDS):
            time.sleep(1)
            model.observe(parse(scrape_text(broker.metrics_url), WANTED), time.monotonic())
        frame = model.frame(time.time())
        stop.set()
        for thread in threads:
            thread.join()
    frame.folders = [row._replace(folder="/var/lib/runnel") for row in frame.folders]
    showing = Showing("http://127.0.0.1:9644/metrics", 2.0, time.strftime("%H:%M:%S"))
    with Path("/dev/null").open("w") as nowhere:
        console = Console(
            record=True, width=COLUMNS, height=LINES, file=nowhere, force_terminal=True
        )
        console.print(draw(frame, showing, COLUMNS, LINES))
    # The picture must not fetch anything from elsewhere when it is looked at.
    svg = console.export_svg(title="runnel top")
    TARGET.write_text(_without_web_fonts(svg))
    print(f"wrote {TARGET.name}: {len(frame.topics)} topics, {len(frame.groups)} groups")


def _without_web_fonts(svg: str) -> str:
    while (start := svg.find("@font-face")) >= 0:
        end = svg.index("}", start) + 1
        svg = svg[:start].rstrip() + "\n" + svg[end:].lstrip()
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


if __name__ == "__main__":
    main()
