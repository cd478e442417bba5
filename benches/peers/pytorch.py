"""A decoder-only model with random weights in PyTorch: `pytorch.py config.json float32|bfloat16 threads`.

Reads one task per line and answers each with one number:

- `steps N`: seconds of a greedy step with a key-value cache, the median of N, in a bare loop over the model, which is faster
  than transformers' own `generate`;
- `prompt N`: seconds of the forward pass over a prompt of N tokens, with the logits of the last token.

`--check` only reports whether the script can run.
"""

import sys
import time


def main():
    import torch
    import transformers

    if sys.argv[1:] == ["--check"]:
        print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}")
        return
    path, dtype, threads = sys.argv[1], getattr(torch, sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    config = transformers.AutoConfig.from_pretrained(path)
    model = transformers.AutoModelForCausalLM.from_config(config).to(dtype).eval()
    tasks = {"steps": steps, "prompt": prompt}
    with torch.inference_mode():
        for line in sys.stdin:
            task, count = line.split()
            print(tasks[task](torch, model, int(count)), flush=True)


def steps(torch, model, count):
    output = model(torch.arange(3, 11).reshape(1, 8), use_cache=True)
    token = output.logits[:, -1:].argmax(-1)
    times = []
    for _ in range(count):
        began = time.perf_counter()
        output = model(token, past_key_values=output.past_key_values, use_cache=True)
        token = output.logits[:, -1:].argmax(-1)
        times.append(time.perf_counter() - began)
    return sorted(times)[count // 2]


def prompt(torch, model, count):
    tokens = torch.arange(count).reshape(1, count) % 1000 + 3
    began = time.perf_counter()
    model(tokens, use_cache=True, logits_to_keep=1)
    return time.perf_counter() - began


main()
