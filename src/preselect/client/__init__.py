"""`Client`, and `AsyncClient` for asyncio: use preselectors of a service from Python, over HTTP."""

from preselect.client.asynchronous import AsyncClient, AsyncServedPreselector
from preselect.client.served_decision import ServedDecision
from preselect.client.synchronous import Client, ServedPreselector

__all__ = ["AsyncClient", "AsyncServedPreselector", "Client", "ServedDecision", "ServedPreselector"]
