"""The engine llama.cpp of the benchmark `quality`: answers the questions on standard input. `llama_cpp.py MODEL THREADS`

It takes the package xllamacpp of PyPI, which has llama.cpp and its server compiled in. The server writes the prompt with the chat
template of the model, and constrains the answer by a grammar that llama.cpp makes of the JSON schema.
"""

import json
import sys
from importlib import metadata

import xllamacpp


def main():
    model, threads = sys.argv[1], int(sys.argv[2])
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.n_ctx = 4096
    params.n_parallel = 1
    # Every prompt is read from its beginning, as by the other engine.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(json.dumps({"name": name(), "peak": peak_memory()}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(server, json.loads(line))), flush=True)


def name():
    """The version of the package, and the instructions that it was compiled for."""
    system = " ".join(xllamacpp.get_system_info().replace("= 1 |", "").replace("CPU :", "").split())
    return f"llama.cpp of xllamacpp {metadata.version('xllamacpp')}, compiled for {system}"


def answer(server, question):
    [prompt] = question["prompts"]
    request = {
        "messages": [
            {"role": "system", "content": prompt["system"]},
            {"role": "user", "content": prompt["user"]},
        ],
        "max_tokens": question["max_tokens"],
        "temperature": question["temperature"],
        "seed": question["seed"],
        "cache_prompt": False,
    }
    if question["temperature"] > 0:
        # By default the server also drops unlikely tokens, and the other engine does not.
        request |= {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
    if prompt["schema"] is not None:
        schema = {"name": "answer", "schema": prompt["schema"]}
        request["response_format"] = {"type": "json_schema", "json_schema": schema}
    response = server.handle_chat_completions(request)
    if "error" in response:
        return {"error": json.dumps(response["error"])}
    timings = response["timings"]
    return {
        "rows": [{"text": response["choices"][0]["message"]["content"] or "", "tokens": timings["predicted_n"]}],
        "calls": timings["predicted_n"],
        "prompt_tokens": timings["prompt_n"],
        "prompt_seconds": timings["prompt_ms"] / 1000,
        "seconds": timings["predicted_ms"] / 1000,
        "peak": peak_memory(),
    }


def peak_memory():
    """The peak of resident memory in bytes; 0 if the system does not report it."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return 0


if __name__ == "__main__":
    main()
