"""The official server over two environments: `gym` counts up to a number, `mcp` adds numbers. Prints its port."""
import asyncio
import socket
import sys
from typing import Any, Optional
from uuid import uuid4

import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Action, Observation, State


class CountAction(Action):
    number: int


class CountObservation(Observation):
    text: str


class Count(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = State(episode_id=None, step_count=0)
        self._next = 1

    def reset(self, seed=None, episode_id=None, **kwargs):
        self._state = State(episode_id=episode_id or str(uuid4()), step_count=0)
        self._next = (seed or 0) % 10
        return CountObservation(text=f"Count on from {self._next}.", done=False, reward=None)

    def step(self, action, timeout_s=None, **kwargs):
        self._state.step_count += 1
        is_right = action.number == self._next + self._state.step_count
        is_last = self._state.step_count == 2 or not is_right
        return CountObservation(
            text="Go on." if is_right else "Wrong.",
            done=is_last,
            reward=0.5 if is_right else 0.0,
        )

    @property
    def state(self):
        return self._state


class Sums(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        mcp = FastMCP("sums")

        @mcp.tool
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        @mcp.tool
        def fail(why: str) -> str:
            """Always fails."""
            raise ValueError(why)

        super().__init__(mcp)
        self._state = State(episode_id=None, step_count=0)

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **kwargs: Any):
        self._state = State(episode_id=episode_id, step_count=0)
        return Observation(done=False, reward=0.0)

    def _step_impl(self, action, timeout_s=None, **kwargs):
        return Observation(done=True, reward=1.0)

    @property
    def state(self):
        return self._state


apps = {
    "gym": lambda: create_app(Count, CountAction, CountObservation, env_name="count", max_concurrent_envs=4),
    "mcp": lambda: create_app(
        Sums, CallToolAction, CallToolObservation, env_name="sums", max_concurrent_envs=4
    ),
}

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
print(listening.getsockname()[1], flush=True)
server = uvicorn.Server(uvicorn.Config(apps[sys.argv[1]](), log_level="warning"))
asyncio.run(server.serve(sockets=[listening]))
