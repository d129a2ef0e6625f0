"""The work of rollout.ts through tinker-cookbook with equal stubs, for the ratio: groups of 16 episodes with 8 replies of 32
tokens and tool results of 500, a sampler that answers at once, a renderer whose tokens are ready.

`messages` goes the way of its tool environments (messages, rendered anew for each prompt); `tokens` is its fastest way, an
environment that hands out token lists itself.

    python test/bench/rollout-cookbook.py [groups]
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import tinker
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.renderers.base import ParseTermination
from tinker_cookbook.rl.message_env import EnvFromMessageEnv, MessageEnv, MessageStepResult
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, StepResult

GROUP, TURNS = 16, 8
REPLY = [7] * 31 + [1]
LOGPROBS = [-1.0] * 32
RESULT = [9] * 500
TEXT = "x" * 500


class Sampler(TokenCompleter):
    async def __call__(self, model_input, stop, *, max_tokens=None):
        return TokensWithLogprobs(REPLY, LOGPROBS, "stop")


class ReadyRenderer:
    """Every message is tokens that are there already."""

    def build_generation_prompt(self, messages, **kwargs):
        ids: list[int] = []
        for message in messages:
            ids += REPLY if message["role"] == "assistant" else RESULT
        return tinker.ModelInput.from_ints(ids)

    def get_stop_sequences(self):
        return [1]

    def parse_response(self, tokens):
        return {"role": "assistant", "content": ""}, ParseTermination.STOP_SEQUENCE


class Conversation(MessageEnv):
    def __init__(self, turns: int):
        self.turns, self.messages = turns, [{"role": "user", "content": TEXT}]

    async def initial_observation(self):
        return self.messages

    async def step(self, message):
        self.turns -= 1
        self.messages += [message, {"role": "tool", "content": TEXT}]
        return MessageStepResult(1.0 if self.turns == 0 else 0.0, self.turns == 0, self.messages)


class Tokens(Env):
    def __init__(self, turns: int):
        self.turns, self.ids = turns, list(RESULT)

    async def initial_observation(self):
        return tinker.ModelInput.from_ints(self.ids), [1]

    async def step(self, action, *, extra=None):
        self.turns -= 1
        self.ids = self.ids + action + RESULT
        return StepResult(
            reward=0.0,
            episode_done=self.turns == 0,
            next_observation=tinker.ModelInput.from_ints(self.ids),
            next_stop_condition=[1],
        )


@dataclass(frozen=True)
class Group(EnvGroupBuilder):
    kind: str
    turns: int

    async def make_envs(self) -> Sequence[Env]:
        if self.kind == "tokens":
            return [Tokens(self.turns) for _ in range(GROUP)]
        return [EnvFromMessageEnv(ReadyRenderer(), Conversation(self.turns)) for _ in range(GROUP)]

    async def compute_group_rewards(self, trajectories, envs):
        return [(1.0, {}) for _ in trajectories]


async def play(kind: str, groups: int, turns: int) -> float:
    begin = time.process_time()
    done = await asyncio.gather(
        *(do_group_rollout(Group(kind, turns), Sampler()) for _ in range(groups))
    )
    assert all(len(group.trajectories_G) == GROUP for group in done)
    return time.process_time() - begin


def main() -> None:
    groups = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for kind in ("messages", "tokens"):
        asyncio.run(play(kind, 2, TURNS))
        seconds = min(asyncio.run(play(kind, groups, TURNS)) for _ in range(3))
        print(f"{kind}: {groups * GROUP / seconds:.0f} rollouts/s")
        for turns in (8, 32, 128):
            few = max(1, groups * 8 // turns // 2)
            best = min(asyncio.run(play(kind, few, turns)) for _ in range(2))
            print(f"{kind}, {turns} turns: {best * 1e6 / (few * GROUP * turns):.1f} µs a turn")


main()
