"""Plays a server's task with the official clients, and prints what they read as one line of JSON."""
import asyncio
import json
import sys

from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient


async def by_frames(base_url):
    async with GenericEnvClient(base_url=base_url) as env:
        first = await env.reset(task_id="two-turns", seed=7, episode_id="e1")
        called = await env.step(
            {"type": "call_tool", "tool_name": "add", "arguments": {"a": 7, "b": 2}}
        )
        turn = await env.step({"type": "end_turn", "text": "It is 9."})
        last = await env.step({"type": "end_turn", "text": "no idea"})
        state = await env.state()
        try:
            await env.step({"type": "end_turn", "text": "more"})
            refused = None
        except RuntimeError as error:
            refused = str(error)
    return {
        "prompt": first.observation["messages"][-1]["content"],
        "tool": called.observation["result"]["data"],
        "turn": turn.observation["turn"],
        "reward": last.reward,
        "done": last.done,
        "steps": state["step_count"],
        "refused": refused,
    }


async def by_tools(base_url):
    async with MCPToolClient(base_url=base_url) as env:
        await env.reset(task_id="one-turn", seed=7)
        tools = [tool.name for tool in await env.list_tools()]
        total = await env.call_tool("add", a=7, b=2)
        try:
            await env.call_tool("fail", why="z")
            failed = None
        except Exception as error:
            failed = str(error)
    return {"tools": tools, "total": total, "failed": failed}


async def main(base_url):
    read = {"frames": await by_frames(base_url), "tools": await by_tools(base_url)}
    print(json.dumps(read, default=str))


asyncio.run(main(sys.argv[1]))
