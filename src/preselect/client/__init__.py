"""Preselectors that a service keeps, used from Python over HTTP: `Client`, and `AsyncClient` for asyncio."""

from preselect.client.asynchronous import AsyncClient, AsyncServedPreselector
from preselect.client.served_decision import ServedDecision
from preselect.client.synchronous import Client, ServedPreselector

__all__ = ["AsyncClient", "AsyncServedPreselector", "Client", "ServedDecision", "ServedPreselector"]
