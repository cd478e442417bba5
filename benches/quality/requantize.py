"""Writes copies of a GGUF file with its matrices in other types, for `--also` of the benchmark `quality`.

    pip install gguf numpy
    python requantize.py MODEL.gguf FOLDER [--types Q8_0 Q4_0]

A copy has the name of its type, `FOLDER/Q8_0.gguf`. All matrices get the type, those of the tokens and of the output
too. Vectors and metadata stay the same. Rows that blocks of 256 numbers do not fill cannot have a K type (Q2_K to
Q6_K) and get the type of `INSTEAD`, as with llama.cpp, which has IQ4_NL in the place of Q4_0. The package `gguf` does
not write K types. Here their scales fit the least and the greatest number of each part; llama.cpp searches for better
ones, which take the same time.
"""

import argparse
import pathlib

import gguf
import numpy as np
from gguf.quants import dequantize, quantize

INSTEAD = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}
TYPES = "F32", "F16", "BF16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", *INSTEAD


def is_left_out(name):
    """Whether a field is one of the header, a key that the writer adds, or a key about the blocks."""
    keys = "general.architecture", "general.alignment", "general.file_type", "general.quantization_version"
    return name.startswith("GGUF.") or name in keys


def quantize_rows(rows, name):
    """The blocks of a matrix, and their type."""
    if name in INSTEAD and rows.shape[1] % 256 != 0:
        name = INSTEAD[name]
    if name in INSTEAD:
        blocks = k_blocks(rows.reshape(-1, 256), name)
        return blocks.reshape(len(rows), -1), gguf.GGMLQuantizationType[name]
    kind = gguf.GGMLQuantizationType[name]
    return quantize(rows, kind), kind


def k_blocks(numbers, name):
    """Blocks of 256 numbers in a K type."""
    bits = int(name[1])
    if name in ("Q3_K", "Q6_K"):
        # Numbers around zero, with a scale for each 16.
        parts, middle = numbers.reshape(-1, 16, 16), 1 << (bits - 1)
        scales, d = rounded(np.abs(parts).max(axis=2) / middle, 31 if name == "Q3_K" else 127)
        steps = divided(parts, (scales * d)[..., None]) + middle
    else:
        # Numbers above a minimum, with a scale and a minimum for each part.
        count = 16 if name == "Q2_K" else 8
        parts, greatest = numbers.reshape(-1, count, 256 // count), 15 if name == "Q2_K" else 63
        least = np.minimum(parts.min(axis=2), 0)
        minima, m = rounded(-least, greatest)
        scales, d = rounded((parts.max(axis=2) - least) / ((1 << bits) - 1), greatest)
        steps = divided(parts + (minima * m)[..., None], (scales * d)[..., None])
    q = np.clip(np.rint(steps), 0, (1 << bits) - 1).astype(np.uint8).reshape(-1, 256)
    if name == "Q2_K":
        fields = [scales | minima << 4, packed(q, 4, 32, 2), halves(d), halves(m)]
    elif name == "Q3_K":
        scales = scales + 32
        packed_scales = [packed(scales & 15, 2, 8, 4), packed(scales >> 4, 4, 4, 2)]
        fields = [packed(q >> 2, 8, 32, 1), packed(q & 3, 4, 32, 2), *packed_scales, halves(d)]
    elif name == "Q6_K":
        fields = [packed(q & 15, 2, 64, 4), packed(q >> 4, 4, 32, 2), scales, halves(d)]
    else:
        # The last four scales and minima have their upper two bits beside the first four.
        upper = [values[:, :4] | values[:, 4:] >> 4 << 6 for values in (scales, minima)]
        fields = [halves(d), halves(m), *upper, scales[:, 4:] & 15 | (minima[:, 4:] & 15) << 4]
        fields += [packed(q >> 4, 8, 32, 1)] if name == "Q5_K" else []
        fields += [packed(q & 15, 2, 32, 4)]
    return np.concatenate(fields, axis=1)


def rounded(values, greatest):
    """Integers up to `greatest` for the values of each block, and the factor of the block."""
    factor = (values.max(axis=1, keepdims=True) / greatest).astype(np.float16).astype(np.float32)
    return np.clip(np.rint(divided(values, factor)), 0, greatest).astype(np.uint8), factor


def divided(values, divisor):
    """Quotients; 0 for a divisor of 0."""
    return np.divide(values, divisor, out=np.zeros_like(values), where=divisor != 0)


def packed(values, parts, width, bits):
    """Bytes of `parts` values of some bits each. The values of a byte stand `width` apart, the first in its low bits."""
    values = values.reshape(len(values), -1, parts, width) << (bits * np.arange(parts, dtype=np.uint8))[:, None]
    return np.bitwise_or.reduce(values, axis=2).reshape(len(values), -1)


def halves(factors):
    """The bytes of a 16-bit float for each block."""
    return factors.astype("<f2").view(np.uint8)


def write_copy(reader, path, name):
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if not is_left_out(field.name):
            kind = field.types[0]
            element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), kind, sub_type=element)
    file_types = "ALL_F32" if name == "F32" else f"MOSTLY_{name}", f"MOSTLY_{name}_S"
    writer.add_file_type(next(gguf.LlamaFileType[key] for key in file_types if key in gguf.LlamaFileType.__members__))
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for tensor in reader.tensors:
        data, kind = tensor.data, tensor.tensor_type
        # The reader reverses the dimensions, so a block is a part of the last one. The writer reverses them again.
        if data.ndim == 2 and kind.name != name:
            data, kind = quantize_rows(dequantize(data, kind), name)
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
