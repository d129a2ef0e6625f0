"""The official SDK's half of `bench/tinker.ts`. Arguments: address, job, size. Prints seconds and peak memory as JSON."""

import json
import resource
import sys
import time
import warnings

warnings.simplefilter("ignore")

import numpy as np
import tinker
from tinker import types

url, job, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
SEQUENCE = 8192


def ready(value):
    return value.result() if hasattr(value, "result") else value


service = tinker.ServiceClient(base_url=url, api_key="tml-dummy")
if job == "train":
    training = ready(service.create_lora_training_client(base_model="toy", rank=8))
    data = []
    for _ in range(count):
        ids = (np.arange(SEQUENCE + 1, dtype=np.int64) * 7919) % 150_000
        data.append(
            types.Datum(
                model_input=types.ModelInput.from_ints(ids[:-1].tolist()),
                loss_fn_inputs={
                    "target_tokens": ids[1:],
                    "logprobs": np.full(SEQUENCE, -1, dtype=np.float32),
                    "advantages": np.full(SEQUENCE, 0.5, dtype=np.float32),
                },
            )
        )
    began, used = time.perf_counter(), time.process_time()
    result = training.forward_backward(data, "importance_sampling").result()
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    assert len(result.loss_fn_outputs) == count
else:
    sampler = ready(service.create_sampling_client(base_model="toy"))
    ids = [(index * 7919) % 150_000 for index in range(512)]
    prompts = [types.ModelInput.from_ints(list(ids)) for _ in range(count)]
    began, used = time.perf_counter(), time.process_time()
    futures = [
        sampler.sample(prompt=prompt, num_samples=1, sampling_params=types.SamplingParams(max_tokens=512))
        for prompt in prompts
    ]
    for future in futures:
        assert len(future.result().sequences[0].tokens) == 512
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"seconds": seconds, "cpu": cpu, "megabytes": usage.ru_maxrss / 1024}))
sys.stdout.flush()
import os

os._exit(0)
