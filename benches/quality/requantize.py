"""Writes copies of a GGUF file with its matrices in other types, for `--also` of the benchmark `quality`.

    pip install gguf numpy
    python requantize.py MODEL.gguf FOLDER [--types Q8_0 Q4_0]

A copy has the name of its type, `FOLDER/Q8_0.gguf`. All matrices get the type, those of the tokens and of the output
too. Vectors and metadata stay the same. The package `gguf` cannot write the K types (Q2_K to Q6_K).
"""

import argparse
import pathlib

import gguf
from gguf.quants import dequantize, quantize

TYPES = "F32", "F16", "BF16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0"


def is_left_out(name):
    """Whether a field is one of the header, a key that the writer adds, or a key about the blocks."""
    keys = "general.architecture", "general.alignment", "general.file_type", "general.quantization_version"
    return name.startswith("GGUF.") or name in keys


def write_copy(reader, path, name):
    wanted = gguf.GGMLQuantizationType[name]
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if not is_left_out(field.name):
            kind = field.types[0]
            element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), kind, sub_type=element)
    writer.add_file_type(gguf.LlamaFileType["ALL_F32" if name == "F32" else f"MOSTLY_{name}"])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for tensor in reader.tensors:
        data, kind = tensor.data, tensor.tensor_type
        # The reader reverses the dimensions, so a block is a part of the last one. The writer reverses them again.
        if data.ndim == 2 and kind != wanted:
            data, kind = quantize(dequantize(data, kind), wanted), wanted
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    all_types = f"by default all: {', '.join(TYPES)}"
    parser.add_argument("--types", nargs="+", choices=TYPES, default=TYPES, metavar="TYPE", help=all_types)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.types:
        path = arguments.folder / f"{name}.gguf"
        print(path)
        write_copy(gguf.GGUFReader(arguments.model), path, name)


main()
