"""Tokens per second of a Llama with random weights in PyTorch: `pytorch.py config.json tokens runs`.

Greedy decoding in 32-bit floats on 2 threads with a key-value cache, as transformers' own `generate` does it and as a
bare loop over the model does it; prints one number per run and way. `--check` only says whether it could run.
"""

import sys
import time


def main():
    import torch
    import transformers

    if sys.argv[1:] == ["--check"]:
        print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}")
        return
    path, tokens, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(2)
    torch.manual_seed(0)
    config = transformers.DecoderConfig.from_json_file(path)
    model = transformers.LlamaForCausalLM(config).to(torch.float32).eval()
    prompt = torch.arange(3, 11).reshape(1, 8)
    with torch.inference_mode():
        loop(model, prompt, 2)
        for _ in range(runs):
            print("loop", loop(model, prompt, tokens), flush=True)
            print("generate", generate(model, prompt, tokens), flush=True)


def loop(model, prompt, tokens):
    """Decode steps per second, the prompt not counted."""
    output = model(prompt, use_cache=True)
    token = output.logits[:, -1:].argmax(-1)
    began = time.perf_counter()
    for _ in range(tokens):
        output = model(token, past_key_values=output.past_key_values, use_cache=True)
        token = output.logits[:, -1:].argmax(-1)
    return tokens / (time.perf_counter() - began)


def generate(model, prompt, tokens):
    """The same through `generate`, the prompt counted."""
    began = time.perf_counter()
    output = model.generate(
        prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0
    )
    return (output.shape[1] - prompt.shape[1]) / (time.perf_counter() - began)


main()
