"""The work of rollout.ts through tinker-cookbook with equal stubs, for the ratio: groups of 16 episodes with 8 replies of about 30
tokens and tool results of about 500, a sampler that answers at once. Rollouts per second of processor time.

`messages` goes the way of its tool environments (messages, rendered anew for each prompt) with tokens that are ready; `tokens` is its
fastest way, an environment that hands out token lists itself; `qwen`, with a `tokenizer.json`, is `messages` with its own renderer.

    python test/bench/rollout-cookbook.py [groups] [tokenizer.json]
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
RESULT = [9] * 500


# Tool results of about 500 tokens, by turn; made before anything is measured.
RESULTS = [
    " ".join(f"item {line} costs {line * 3 % 97}" for line in range(turn, turn + 62))
    for turn in range(130)
]


class Sampler(TokenCompleter):
    def __init__(self, reply):
        self.reply, self.logprobs = reply, [-1.0] * len(reply)

    async def __call__(self, model_input, stop, *, max_tokens=None):
        return TokensWithLogprobs(self.reply, self.logprobs, "stop")


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
        self.left, self.turn = turns, 0
        self.messages = [{"role": "user", "content": RESULTS[0]}]

    async def initial_observation(self):
        return self.messages

    async def step(self, message):
        self.left, self.turn = self.left - 1, self.turn + 1
        self.messages += [message, {"role": "tool", "content": RESULTS[self.turn]}]
        return MessageStepResult(1.0 if self.left == 0 else 0.0, self.left == 0, self.messages)


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


class Inline(EnvFromMessageEnv):
    """Renders at once: in threads, as it does, its tokenizer fails with "Already borrowed"."""

    async def _render_in_thread(self, messages, **kwargs):
        return self.renderer.build_generation_prompt(messages, **kwargs)


@dataclass(frozen=True)
class Group(EnvGroupBuilder):
    renderer: object
    turns: int

    async def make_envs(self) -> Sequence[Env]:
        if self.renderer is None:
            return [Tokens(self.turns) for _ in range(GROUP)]
        return [Inline(self.renderer, Conversation(self.turns)) for _ in range(GROUP)]

    async def compute_group_rewards(self, trajectories, envs):
        return [(1.0, {}) for _ in trajectories]


async def play(renderer, reply, groups: int, turns: int) -> float:
    begin = time.process_time()
    done = await asyncio.gather(
        *(do_group_rollout(Group(renderer, turns), Sampler(reply)) for _ in range(groups))
    )
    assert all(len(group.trajectories_G) == GROUP for group in done)
    assert all(len(one.transitions) == turns for group in done for one in group.trajectories_G)
    return time.process_time() - begin


def measure(name: str, renderer, reply, groups: int, lengths=(8, 32, 128)) -> None:
    asyncio.run(play(renderer, reply, 1, TURNS))
    seconds = min(asyncio.run(play(renderer, reply, groups, TURNS)) for _ in range(3))
    print(f"{name}: {groups * GROUP / seconds:.0f} rollouts/s")
    for turns in lengths:
        few = max(1, groups * 8 // turns // 2)
        best = min(asyncio.run(play(renderer, reply, few, turns)) for _ in range(2))
        print(f"{name}, {turns} turns: {best * 1e6 / (few * GROUP * turns):.1f} µs a turn")


def main() -> None:
    groups = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    if len(sys.argv) > 2:
        from tinker_cookbook.renderers import get_renderer
        from transformers import PreTrainedTokenizerFast

        tokenizer = PreTrainedTokenizerFast(tokenizer_file=sys.argv[2])
        call = '{"name": "find_order", "arguments": {"order": "W123"}}'
        text = f"Let me see.\n<tool_call>\n{call}\n</tool_call><|im_end|>"
        reply = tokenizer.encode(text, add_special_tokens=False)
        measure("qwen", get_renderer("qwen3_instruct", tokenizer), reply, groups, (8, 32))
        return
    measure("messages", ReadyRenderer(), REPLY, groups)
    measure("tokens", None, REPLY, groups)


main()
