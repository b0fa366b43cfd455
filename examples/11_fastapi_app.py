"""A web service with FastAPI: orders come in by HTTP and go out as messages, and are read back.

Producer and consumer live as long as the application (its lifespan), on its event loop: no thread
per request, nothing to clean up by hand. To serve it: `cd examples && uvicorn 11_fastapi_app:app`.
By itself it asks itself.

It prints:

    POST /orders: 201 {'partition': 0, 'offset': 0}
    POST /orders: 201 {'partition': 0, 'offset': 1}
    GET /tables/4: 200 ['tea', 'cake']
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from a_broker import a_broker, new_topic
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from runnel.client import (
    AsyncConsumer,
    AsyncProducer,
    ClientError,
    ConsumerConfig,
    JsonSerializer,
    ProducerConfig,
)

TOPIC = "examples.orders"


class Order(BaseModel):
    table: int
    dish: str


class Restaurant:
    """What the application holds while it runs."""

    def __init__(self, servers: str) -> None:
        self.producer = AsyncProducer(ProducerConfig(servers, value_serializer=JsonSerializer()))
        # Without a group it reads all orders from the beginning, anew at each start.
        self.consumer = AsyncConsumer(ConsumerConfig(servers, value_deserializer=JsonSerializer()))
        self.tables: defaultdict[int, list[str]] = defaultdict(list)
        self._read = asyncio.Condition()

    async def follow(self) -> None:
        async for message in self.consumer:
            order = Order(**message.value)
            async with self._read:
                self.tables[order.table].append(order.dish)
                self._read.notify_all()

    async def has_read(self, count: int) -> None:
        """Returns when so many orders have come."""
        async with self._read:
            await self._read.wait_for(lambda: sum(map(len, self.tables.values())) >= count)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    servers = os.environ.get("RUNNEL_BOOTSTRAP_SERVER", "localhost:9092")
    restaurant = app.state.restaurant = Restaurant(servers)
    async with restaurant.producer, restaurant.consumer, asyncio.TaskGroup() as tasks:
        await restaurant.consumer.subscribe(TOPIC)
        following = tasks.create_task(restaurant.follow())
        yield
        following.cancel()


app = FastAPI(title="Restaurant", lifespan=lifespan)


@app.post("/orders", status_code=201)
async def order(order: Order) -> dict[str, int]:
    """Answers when the order is safe with the broker."""
    try:
        producer = app.state.restaurant.producer
        delivery = await producer.send_and_wait(TOPIC, order.model_dump(), f"table {order.table}")
    except ClientError as error:
        raise HTTPException(503, str(error)) from None
    return {"partition": delivery.partition, "offset": delivery.offset}


@app.get("/tables/{table}")
async def dishes(table: int) -> list[str]:
    """What this table has ordered, as far as it was read."""
    return list(app.state.restaurant.tables[table])


async def ask_ourselves() -> None:
    """As a client would, without a socket: so such an application is also tested."""
    transport = httpx.ASGITransport(app)
    async with lifespan(app), httpx.AsyncClient(transport=transport, base_url="http://us") as us:
        for dish in ("tea", "cake"):
            answer = await us.post("/orders", json={"table": 4, "dish": dish})
            print("POST /orders:", answer.status_code, answer.json())
        async with asyncio.timeout(10):  # orders come back a moment after they were sent
            await app.state.restaurant.has_read(2)
        answer = await us.get("/tables/4")
        print("GET /tables/4:", answer.status_code, answer.json())


if __name__ == "__main__":
    with a_broker() as servers:
        os.environ["RUNNEL_BOOTSTRAP_SERVER"] = servers
        new_topic(servers, TOPIC)
        asyncio.run(ask_ourselves())
