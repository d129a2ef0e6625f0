"""Drives the unmodified official SDK through all that it does with a service, and prints what it saw as JSON.

Arguments: base address, base model. The other side makes the same calls in TypeScript and compares.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from datetime import datetime

warnings.simplefilter("ignore")

import numpy as np
import tinker
from tinker import types

try:
    import torch
except ImportError:
    torch = None

url, model = sys.argv[1:3]
seen = {}


def ready(value):
    """Newer releases give futures where older ones gave clients."""
    return value.result() if hasattr(value, "result") else value


def error_of(call):
    began = time.monotonic()
    try:
        call()
    except Exception as error:
        return {"type": type(error).__name__, "message": str(error), "seconds": time.monotonic() - began}
    return None


def datum(tokens, **inputs):
    return types.Datum(model_input=types.ModelInput.from_ints(tokens), loss_fn_inputs=inputs)


def outputs(result):
    return [[float(x) for x in it["logprobs"].to_numpy().ravel()] for it in result.loss_fn_outputs]


def seen_by(result):
    return {"logprobs": outputs(result), "loss": result.metrics["loss:sum"]}


LABELLED = [
    datum([1, 2, 3], target_tokens=[2, 3, 4], weights=[0.0, 1.0, -0.5]),
    datum([5, 6], target_tokens=[6, 7], weights=[0.25, 2.0]),
]
PLAYED = [
    datum([1, 2, 3], target_tokens=[2, 3, 4], logprobs=[0.0, -4.0, -3.0], advantages=[0.0, 1.0, -1.0]),
    datum([5, 6], target_tokens=[6, 7], logprobs=[-3.0, -2.0], advantages=[0.5, -0.25]),
]
ADAM = types.AdamParams(learning_rate=0.1, beta1=0.8, beta2=0.9, eps=1e-6, weight_decay=0.01, grad_clip_norm=0.5)
PROMPT = types.ModelInput.from_ints([1, 2, 3])

service = tinker.ServiceClient(base_url=url, api_key="tml-dummy")
seen["version"] = tinker.__version__
rest = service.create_rest_client()

training = ready(service.create_lora_training_client(base_model=model, rank=8, seed=3))
seen["model"] = training.model_id
info = training.get_info()
seen["info"] = {"name": info.model_data.model_name, "lora": info.is_lora, "rank": info.lora_rank}

seen["forward"] = seen_by(training.forward(LABELLED, "cross_entropy").result())
seen["losses"] = {}
for name, data, config in [
    ("cross_entropy", LABELLED, None),
    ("importance_sampling", PLAYED, None),
    ("ppo", PLAYED, {"clip_low_threshold": 0.9, "clip_high_threshold": 1.1}),
    ("cispo", PLAYED, {"clip_low_threshold": 0.0, "clip_high_threshold": 4.0}),
    ("dro", PLAYED, {"beta": 0.05}),
]:
    backward = training.forward_backward(data, name, config)
    step = training.optim_step(ADAM)
    seen["losses"][name] = seen_by(backward.result())
    step.result()
seen["after"] = seen_by(training.forward(LABELLED, "cross_entropy").result())

if torch is not None:
    plain = [types.Datum(model_input=it.model_input, loss_fn_inputs={"target_tokens": it.loss_fn_inputs["target_tokens"]}) for it in LABELLED]
    custom = training.forward_backward_custom(plain, lambda data, logprobs: (sum((it**2).sum() for it in logprobs), {"mine": 1.0}))
    custom = custom.result()
    training.optim_step(ADAM).result()
    seen["custom"] = {"mine": custom.metrics["mine"], "after": seen_by(training.forward(LABELLED, "cross_entropy").result())}

many = [datum([index % 60], target_tokens=[(index * 7) % 60], weights=[1.0]) for index in range(2100)]
seen["many"] = [values[0] for values in outputs(training.forward(many, "cross_entropy").result())]

seen["targets_2d"] = outputs(
    training.forward(
        [datum([1, 2], target_tokens=np.array([[5, 6], [7, 8]]), weights=np.array([[0.25, 0.0], [0.0, 0.75]], dtype=np.float32))],
        "cross_entropy",
    ).result()
)

sampler = ready(training.save_weights_and_get_sampling_client())


def sample(client=sampler, count=1, **params):
    result = client.sample(prompt=PROMPT, num_samples=count, sampling_params=types.SamplingParams(**params)).result()
    return [{"tokens": list(it.tokens), "logprobs": list(it.logprobs), "stop": it.stop_reason} for it in result.sequences]


seen["sample"] = sample(count=2, max_tokens=8, seed=11)
seen["greedy"] = sample(max_tokens=8, temperature=0.0)
stop = seen["greedy"][0]["tokens"][4]
seen["stopped"] = sample(max_tokens=8, temperature=0.0, stop=[stop])
seen["stop_token"] = stop
whole = types.ModelInput.from_ints([1, 2, 3] + seen["sample"][0]["tokens"])
seen["prompt_logprobs"] = list(sampler.compute_logprobs(whole).result())
scored = sampler.sample(
    prompt=whole,
    num_samples=1,
    sampling_params=types.SamplingParams(max_tokens=1),
    include_prompt_logprobs=True,
    topk_prompt_logprobs=3,
).result()
seen["topk"] = [None if row is None else [[int(id), float(value)] for id, value in row] for row in scored.topk_prompt_logprobs]
base = ready(service.create_sampling_client(base_model=model))
seen["base_sample"] = sample(base, max_tokens=6, seed=4)

state = training.save_state("one").result().path
published = training.save_weights_for_sampler("s1").result().path
seen["paths"] = [state, published]
opened = ready(service.create_sampling_client(model_path=published))
seen["opened_sample"] = sample(opened, max_tokens=6, seed=4)
seen["fresh_sample"] = sample(max_tokens=6, seed=4)

seen["resumed"] = {}
for name, make in [
    ("optimizer", service.create_training_client_from_state_with_optimizer),
    ("weights", service.create_training_client_from_state),
]:
    resumed = ready(make(state))
    before = seen_by(resumed.forward(LABELLED, "cross_entropy").result())
    backward, step = resumed.forward_backward(LABELLED, "cross_entropy"), resumed.optim_step(ADAM)
    backward.result(), step.result()
    seen["resumed"][name] = {"before": before, "after": seen_by(resumed.forward(LABELLED, "cross_entropy").result())}
backward, step = training.forward_backward(LABELLED, "cross_entropy"), training.optim_step(ADAM)
backward.result(), step.result()
seen["continued"] = seen_by(training.forward(LABELLED, "cross_entropy").result())

listed = rest.list_checkpoints(training.model_id).result().checkpoints
seen["listed"] = sorted(it.checkpoint_id for it in listed)
seen["all"] = sorted(it.tinker_path for it in rest.list_user_checkpoints().result().checkpoints)
runs = rest.list_training_runs().result().training_runs
seen["runs"] = [it.training_run_id for it in runs]
weights = rest.get_weights_info_by_tinker_path(state).result()
seen["weights_info"] = {"base": weights.base_model, "lora": weights.is_lora, "rank": weights.lora_rank}
rest.publish_checkpoint_from_tinker_path(state).result()
seen["public"] = [it.public for it in rest.list_checkpoints(training.model_id).result().checkpoints if it.tinker_path == state]
rest.unpublish_checkpoint_from_tinker_path(state).result()
rest.set_checkpoint_ttl_from_tinker_path(state, 3600).result()
if hasattr(rest, "get_checkpoint_archive_url_from_tinker_path"):
    # Newer releases have no archives. The command-line program that comes with the SDK does the rest.
    archive = rest.get_checkpoint_archive_url_from_tinker_path(state).result()
    program = os.path.join(os.path.dirname(sys.executable), "tinker")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "checkpoint", "download", state, "--output", folder], check=True, stdout=subprocess.DEVNULL)
        (unpacked,) = os.listdir(folder)
        place = os.path.join(folder, unpacked)
        files = {name: open(os.path.join(place, name), "rb").read() for name in sorted(os.listdir(place))}
    seen["archive"] = {
        "soon": (archive.expires - datetime.now(archive.expires.tzinfo)).total_seconds(),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
rest.delete_checkpoint_from_tinker_path(published).result()
seen["left"] = sorted(it.checkpoint_id for it in rest.list_checkpoints(training.model_id).result().checkpoints)
seen["capabilities"] = [it.model_name for it in ready(service.get_server_capabilities()).supported_models]

seen["errors"] = {
    "length": error_of(lambda: training.forward_backward([datum([1, 2], target_tokens=[1], weights=[1.0])], "cross_entropy").result()),
    "model": error_of(lambda: ready(service.create_sampling_client(base_model="no-such-model"))),
    "name_taken": error_of(lambda: training.save_state("one").result()),
    "path": error_of(lambda: ready(service.create_sampling_client(model_path=state + "x"))),
    "window": error_of(lambda: sampler.compute_logprobs(types.ModelInput.from_ints([1] * 600)).result()),
    "bad_request": error_of(lambda: sample(max_tokens=0)),
    "rank": error_of(lambda: ready(service.create_lora_training_client(base_model=model, rank=0))),
}
# None of them broke the model.
seen["still"] = seen_by(training.forward(LABELLED, "cross_entropy").result())
print(json.dumps(seen))
