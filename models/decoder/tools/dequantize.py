"""Writes the numbers of a GGUF model of Llama's architecture as 32-bit floats: as a GGUF file and as a Hugging Face folder.

    pip install gguf numpy safetensors
    python dequantize.py MODEL.gguf FOLDER

The folder gets `f32.gguf`, with the keys of MODEL.gguf, and `config.json` with `model.safetensors`, without a tokenizer. The
package `gguf` dequantizes the blocks. A test compares the tokens of both with those of MODEL.gguf.
"""

import argparse
import json
import pathlib

import gguf
import numpy
from gguf.quants import dequantize
from safetensors.numpy import save_file

NAMES = {
    "token_embd": "embed_tokens",
    "output_norm": "norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def folder_name(name):
    """The name of a tensor in a folder: `blk.0.attn_q.weight` is `model.layers.0.self_attn.q_proj.weight`."""
    if name == "output.weight":
        return "lm_head.weight"
    *layer, part, kind = name.split(".")
    return ".".join(["model", *["layers" if word == "blk" else word for word in layer], NAMES[part], kind])


def folder_rows(matrix, heads):
    """The rows of queries or keys in the order of a folder: a GGUF file interleaves the halves of each head."""
    pairs = matrix.reshape(heads, -1, 2, matrix.shape[1])
    return numpy.ascontiguousarray(pairs.swapaxes(1, 2).reshape(matrix.shape))


def config(keys, tensors):
    def key(name, default=None):
        return keys.get(f"llama.{name}", default)

    def number(name):
        # The shortest text of the 32-bit float, as a folder has it.
        return float(str(numpy.float32(key(name))))

    heads = key("attention.head_count")
    return dict(
        architectures=["LlamaForCausalLM"],
        model_type="llama",
        vocab_size=len(tensors["token_embd.weight"]),
        hidden_size=key("embedding_length"),
        intermediate_size=key("feed_forward_length"),
        num_hidden_layers=key("block_count"),
        num_attention_heads=heads,
        num_key_value_heads=key("attention.head_count_kv", heads),
        max_position_embeddings=key("context_length"),
        rms_norm_eps=number("attention.layer_norm_rms_epsilon"),
        rope_theta=number("rope.freq_base"),
        tie_word_embeddings="output.weight" not in tensors,
        bos_token_id=keys.get("tokenizer.ggml.bos_token_id"),
        eos_token_id=keys.get("tokenizer.ggml.eos_token_id"),
    )


def is_left_out(name):
    """Whether a field is one of the header, a key that the writer adds, or a key about the blocks."""
    keys = "general.architecture", "general.alignment", "general.file_type", "general.quantization_version"
    return name.startswith("GGUF.") or name in keys


def write_gguf(path, fields, tensors):
    writer = gguf.GGUFWriter(path, "llama")
    for field in fields:
        kind = field.types[0]
        element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=element)
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_folder(folder, config, tensors):
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}

    def rows(name, tensor):
        part = name.split(".")[-2]
        return folder_rows(tensor, heads[part]) if part in heads else tensor

    named = {folder_name(name): rows(name, tensor) for name, tensor in tensors.items()}
    save_file(named, folder / "model.safetensors", metadata={"format": "pt"})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    reader = gguf.GGUFReader(arguments.model)
    fields = [field for field in reader.fields.values() if not is_left_out(field.name)]
    tensors = {tensor.name: dequantize(tensor.data, tensor.tensor_type) for tensor in reader.tensors}
    keys = {field.name: field.contents() for field in fields}
    arguments.folder.mkdir(parents=True, exist_ok=True)
    write_gguf(arguments.folder / "f32.gguf", fields, tensors)
    write_folder(arguments.folder, config(keys, tensors), tensors)


main()
