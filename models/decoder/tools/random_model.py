"""Writes a Hugging Face folder of random weights, in the shape of a published model.

    pip install numpy
    python random_model.py qwen3-0.6b FOLDER
    python random_model.py smollm2-135m FOLDER --dtype f32 --tokenizer path/to/tokenizer.json --eos 2

Such a folder loads as the published one does and takes as long for a token; what it says is noise. Without `--tokenizer` it has the
tokenizer of the embedded model. Ids that the tokenizer lacks have logits and no bytes. Of each family there is a `tiny` one, for
tests.
"""

import argparse
import json
import math
import pathlib
import shutil
import struct

import numpy

TINY = pathlib.Path(__file__).resolve().parents[2] / "tiny"
SHARD_BYTES = 1 << 30

ARCHITECTURES = dict(
    llama="LlamaForCausalLM",
    mistral="MistralForCausalLM",
    qwen2="Qwen2ForCausalLM",
    qwen3="Qwen3ForCausalLM",
    smollm3="SmolLM3ForCausalLM",
    gemma3_text="Gemma3ForCausalLM",
)


def config(model_type, vocabulary, hidden, inner, layers, heads, kv_heads, positions, **more):
    return dict(
        architectures=[ARCHITECTURES[model_type]],
        model_type=model_type,
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=positions,
        # Those of the published tokenizer are not those of the one that is copied.
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
        **{"tie_word_embeddings": True, "rms_norm_eps": 1e-6, **more},
    )


def llama(*sizes, **more):
    return config("llama", *sizes, hidden_act="silu", **more)


def mistral(*sizes, **more):
    return config("mistral", *sizes, hidden_act="silu", **{"tie_word_embeddings": False, **more})


def qwen2(*sizes, **more):
    return config("qwen2", *sizes, hidden_act="silu", rope_theta=1e6, use_sliding_window=False, **more)


def qwen3(*sizes, head_dim=128, **more):
    return config("qwen3", *sizes, hidden_act="silu", head_dim=head_dim, rope_theta=1e6, use_sliding_window=False, **more)


def smollm3(*sizes, **more):
    return config("smollm3", *sizes, hidden_act="silu", rope_theta=5e6, no_rope_layer_interval=4, **more)


def gemma3(*sizes, head_dim=256, sliding_window=512):
    return config(
        "gemma3_text",
        *sizes,
        head_dim=head_dim,
        hidden_activation="gelu_pytorch_tanh",
        query_pre_attn_scalar=head_dim,
        rope_theta=1e6,
        rope_local_base_freq=1e4,
        sliding_window=sliding_window,
        sliding_window_pattern=6,
    )


# The sizes are those of the `config.json` of each, at huggingface.co.
MODELS = {
    "smollm2-135m": llama(49152, 576, 1536, 30, 9, 3, 8192, rope_theta=1e5, rms_norm_eps=1e-5),
    "smollm2-360m": llama(49152, 960, 2560, 32, 15, 5, 8192, rope_theta=1e5, rms_norm_eps=1e-5),
    "smollm2-1.7b": llama(49152, 2048, 8192, 24, 32, 32, 8192, rope_theta=1.3e5, rms_norm_eps=1e-5),
    "llama-3.2-1b": llama(
        128256, 2048, 8192, 16, 32, 8, 131072,
        head_dim=64,
        rope_theta=5e5,
        rms_norm_eps=1e-5,
        rope_scaling=dict(
            rope_type="llama3",
            factor=32.0,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
            original_max_position_embeddings=8192,
        ),
    ),
    "mistral-7b": mistral(32000, 4096, 14336, 32, 32, 8, 32768, rope_theta=1e4, rms_norm_eps=1e-5, sliding_window=4096),
    "qwen2.5-0.5b": qwen2(151936, 896, 4864, 24, 14, 2, 32768),
    "qwen2.5-1.5b": qwen2(151936, 1536, 8960, 28, 12, 2, 131072),
    "qwen3-0.6b": qwen3(151936, 1024, 3072, 28, 16, 8, 40960),
    "qwen3-1.7b": qwen3(151936, 2048, 6144, 28, 16, 8, 40960),
    "smollm3-3b": smollm3(128256, 2048, 11008, 36, 16, 4, 65536),
    "gemma3-270m": gemma3(262144, 640, 2048, 18, 4, 1, 32768),
    "gemma3-1b": gemma3(262144, 1152, 6912, 26, 4, 1, 32768),
    "llama-tiny": llama(1600, 64, 96, 2, 4, 2, 512, rope_theta=1e4),
    "mistral-tiny": mistral(1600, 64, 96, 2, 4, 2, 512, rope_theta=1e4, sliding_window=16),
    "qwen2-tiny": qwen2(1600, 64, 96, 2, 4, 2, 512),
    "qwen3-tiny": qwen3(1600, 64, 96, 2, 4, 2, 512, head_dim=32),
    "smollm3-tiny": smollm3(1600, 64, 96, 4, 4, 2, 512),
    "gemma3-tiny": gemma3(1600, 64, 96, 6, 4, 1, 512, head_dim=32, sliding_window=16),
}


def tensors(config):
    """Names, shapes, means and deviations of the parameters."""
    family, hidden, inner = config["model_type"], config["hidden_size"], config["intermediate_size"]
    width = config.get("head_dim", hidden // config["num_attention_heads"])
    queries, keys = config["num_attention_heads"] * width, config["num_key_value_heads"] * width
    gemma = family == "gemma3_text"

    def matrix(name, rows, columns):
        return name + ".weight", [rows, columns], 0.0, 0.02

    def norm(name, width):
        return name + ".weight", [width], 0.0 if gemma else 1.0, 0.1

    yield matrix("model.embed_tokens", config["vocab_size"], hidden)
    for index in range(config["num_hidden_layers"]):
        layer = f"model.layers.{index}."
        yield norm(layer + "input_layernorm", hidden)
        for name, rows in ("q_proj", queries), ("k_proj", keys), ("v_proj", keys):
            yield matrix(layer + "self_attn." + name, rows, hidden)
            if family == "qwen2":
                yield layer + "self_attn." + name + ".bias", [rows], 0.0, 0.1
        if family in ("qwen3", "gemma3_text"):
            yield norm(layer + "self_attn.q_norm", width)
            yield norm(layer + "self_attn.k_norm", width)
        yield matrix(layer + "self_attn.o_proj", hidden, queries)
        yield norm(layer + "post_attention_layernorm", hidden)
        if gemma:
            yield norm(layer + "pre_feedforward_layernorm", hidden)
            yield norm(layer + "post_feedforward_layernorm", hidden)
        yield matrix(layer + "mlp.gate_proj", inner, hidden)
        yield matrix(layer + "mlp.up_proj", inner, hidden)
        yield matrix(layer + "mlp.down_proj", hidden, inner)
    yield norm("model.norm", hidden)
    if not config["tie_word_embeddings"]:
        yield matrix("lm_head", config["vocab_size"], hidden)


def stored(values, dtype):
    """A tensor in the float type of the file."""
    if dtype == "bf16":
        # To the nearest, ties to even.
        bits = values.view(numpy.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
    return values.astype({"f16": numpy.float16, "f32": numpy.float32}[dtype])


def shards(config, width):
    """Lists of parameters that take `SHARD_BYTES` together, or are a single one."""
    shard, size = [], 0
    for parameter in tensors(config):
        length = width * math.prod(parameter[1])
        if shard and size + length > SHARD_BYTES:
            yield shard
            shard, size = [], 0
        shard.append(parameter)
        size += length
    yield shard


def write_shard(path, shard, dtype, generator):
    """Writes a safetensors file, one tensor at a time: the length of the header, the header, the data."""
    width = 4 if dtype == "f32" else 2
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, shape, _, _ in shard:
        start, end = end, end + width * math.prod(shape)
        header[name] = dict(dtype=dtype.upper(), shape=shape, data_offsets=[start, end])
    header = json.dumps(header).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for _, shape, mean, deviation in shard:
            values = generator.standard_normal(shape, dtype=numpy.float32)
            values *= deviation
            values += mean
            file.write(stored(values, dtype).data)
    print(f"{path}: {end / 1e6:.0f} MB")


def write(model, folder, dtype, tokenizer, eos, seed):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("model*.safetensors*"):
        old.unlink()
    config = dict(MODELS[model], torch_dtype=dict(bf16="bfloat16", f16="float16", f32="float32")[dtype])
    if eos is not None:
        config["eos_token_id"] = eos
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    shutil.copyfile(tokenizer, folder / "tokenizer.json")
    for name in "tokenizer_config.json", "generation_config.json", "chat_template.jinja":
        (folder / name).unlink(missing_ok=True)
        if (tokenizer.parent / name).exists():
            shutil.copyfile(tokenizer.parent / name, folder / name)

    generator = numpy.random.default_rng(seed)
    width = 4 if dtype == "f32" else 2
    all_shards = list(shards(config, width))
    if len(all_shards) == 1:
        return write_shard(folder / "model.safetensors", all_shards[0], dtype, generator)
    places = {}
    for number, shard in enumerate(all_shards, 1):
        file = f"model-{number:05}-of-{len(all_shards):05}.safetensors"
        write_shard(folder / file, shard, dtype, generator)
        places |= {name: file for name, _, _, _ in shard}
    total = sum(width * math.prod(shape) for _, shape, _, _ in tensors(config))
    index = dict(metadata=dict(total_size=total), weight_map=places)
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", choices=MODELS, metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--dtype", choices=["bf16", "f16", "f32"], default="bf16")
    parser.add_argument("--tokenizer", type=pathlib.Path, default=TINY / "tokenizer.json", help="a tokenizer.json; the files beside it are copied too")
    parser.add_argument("--eos", type=int, help="the token that ends a sequence, where no file beside the tokenizer says so")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    write(**vars(arguments))


main()
