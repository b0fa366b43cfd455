"""Request and reply: ask a service over topics, and get the answer to your own question.

The request says in its headers where the answer shall go and which number it shall bear. So any
number of clients and servers can work at once, and a server that comes late finds the question.

It prints:

    6 * 7 is 42
    12 * 12 is 144
    6 / 0 failed: division by zero
"""

import threading
import uuid

from a_broker import a_broker, new_topic

from runnel.client import Consumer, ConsumerConfig, Producer, ProducerConfig

QUESTIONS, ANSWERS = "examples.questions", "examples.answers"


def serve(servers: str, consumer: Consumer) -> None:
    """The service: more of them in the same group share the questions."""
    with Producer(ProducerConfig(servers, linger_ms=0)) as producer, consumer:
        consumer.subscribe(QUESTIONS)
        for question in consumer:
            headers = {"correlation-id": question.headers["correlation-id"]}
            first, operator, second = question.text.split()
            try:
                number = int(first) * int(second) if operator == "*" else int(first) / int(second)
                answer = f"is {number}"
            except ArithmeticError as error:
                answer = f"failed: {error}"
            reply_to = question.header("reply-to") or ANSWERS
            producer.send(reply_to, answer, headers=headers).result()


class Client:
    """Reads all answers from now on, and keeps its own."""

    def __init__(self, producer: Producer, consumer: Consumer) -> None:
        self._producer, self._consumer = producer, consumer
        consumer.subscribe(ANSWERS)

    def ask(self, question: str) -> str:
        number = str(uuid.uuid4())
        headers = {"correlation-id": number, "reply-to": ANSWERS}
        self._producer.send(QUESTIONS, question, headers=headers)
        for answer in self._consumer.messages(idle_timeout_s=10):
            if answer.header("correlation-id") == number:
                return answer.text
        raise TimeoutError(f"no answer to {question}")


with a_broker() as servers:
    new_topic(servers, QUESTIONS, partitions=2)
    new_topic(servers, ANSWERS, config={"retention.ms": "60000"})
    group = ConsumerConfig(servers, group_id="examples.calculators")
    service = Consumer(group)
    thread = threading.Thread(target=serve, args=(servers, service), daemon=True)
    thread.start()
    with (
        Producer(ProducerConfig(servers, linger_ms=0)) as producer,
        Consumer(ConsumerConfig(servers)) as consumer,
    ):
        client = Client(producer, consumer)
        for question in ("6 * 7", "12 * 12", "6 / 0"):
            print(question, client.ask(question))
    service.stop()
    thread.join()
