"""The official client against a gateway: a loop of tools, streaming, an early exit, and an ended attempt. Prints what it saw."""

import json
import sys

from openai import OpenAI, PermissionDeniedError

client = OpenAI()  # OPENAI_BASE_URL and OPENAI_API_KEY
tools = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            },
        },
    }
]


def play() -> str:
    messages = [{"role": "user", "content": "go"}]
    while True:
        completion = client.chat.completions.create(model="policy", messages=messages, tools=tools)
        message = completion.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            given = json.loads(call.function.arguments)
            result = str(given["a"] + given["b"])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def stream() -> str:
    pieces = client.chat.completions.create(
        model="policy",
        messages=[{"role": "user", "content": "stream"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    return "".join(chunk.choices[0].delta.content or "" for chunk in pieces if chunk.choices)


def leave() -> None:
    pieces = client.chat.completions.create(
        model="policy", messages=[{"role": "user", "content": "leave"}], stream=True
    )
    next(iter(pieces))
    pieces.close()


def respond() -> str:
    first = client.responses.create(model="policy", input="respond")
    second = client.responses.create(model="policy", input="on", previous_response_id=first.id)
    return second.output_text


def closed() -> bool:
    try:
        client.chat.completions.create(model="policy", messages=[{"role": "user", "content": "late"}])
    except PermissionDeniedError as error:
        return error.code == "rollout_closed"
    return False


seen = {"played": play(), "streamed": stream(), "responded": respond()}
leave()
client.post("/rollout/reward", body={"value": 0.5, "final": True}, cast_to=object)
seen["closed"] = closed()
json.dump(seen, sys.stdout)
