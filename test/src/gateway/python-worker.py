"""An agent on the official client, in threads that fetch tasks from a gateway, play them, reward themselves, and fetch the next."""

import json
import os
import threading
import urllib.request

from openai import OpenAI


def next_task():
    request = urllib.request.Request(
        os.environ["GATEWAY"] + "/work/next",
        data=json.dumps({"wait": 10}).encode(),
        headers={"authorization": "Bearer " + os.environ["WORKER_KEY"]},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response) if response.status == 200 else None


shared = OpenAI(api_key="each task brings its own")


def play(work) -> None:
    client = shared.with_options(base_url=work["base_url"], api_key=work["api_key"])
    prompt = [{"role": "user", "content": work["task"]["prompt"]}]
    pieces = client.chat.completions.create(model=work["model"], messages=prompt, stream=True)
    said = "".join(chunk.choices[0].delta.content or "" for chunk in pieces)
    letters = said.replace(" ", "")
    share = sum(letter in "aeiou" for letter in letters) / len(letters) if letters else 0
    client.post("/rollout/reward", body={"value": share, "final": True}, cast_to=object)


def run() -> None:
    while True:
        work = next_task()
        if work is not None:
            play(work)


workers = [threading.Thread(target=run) for _ in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
