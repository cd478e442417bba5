"""Writes the small tokenizers of `tokenizers/` beside this file, of the kinds that the families have.

    pip install transformers tokenizers
    python export_tokenizers.py

Of each there is a `NAME.json`, which is a `tokenizer.json`, and in `expected.json` what Hugging Face transformers makes of it: the
kind and the bytes of every id, and the ids of some texts without the tokens that are added around them.
"""

import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

HERE = pathlib.Path(__file__).parent / "tokenizers"
CORPUS = [
    "The order holds two apples, three pears and 12 plums; Ada pays 3.50 for it.",
    "It's what they'd said: we'll see. THE END\n\n\tdef order(items):\n\t\treturn items[0]\n",
    "Grüße aus Köln, où l'été est passé. Ещё одна строка. 注文は二つのりんごです。",
] * 3
TEXTS = [
    "Two apples, 1234 pears.",
    " leading and  double   spaces ",
    "it's THEY'D\r\n\n\n\tx\t\ty  \n",
    "Grüße 注文 🙂 ‱ Жук e\u0301",
    "<think>no</think> <|im_start|>user <s> ▁ <0x41>",
    "",
]
# How words are split, in the words of the families.
SPLITS = dict(
    qwen=r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    llama3=r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)


def special(*contents):
    return [AddedToken(content, special=True, normalized=False) for content in contents]


def plain(*contents):
    return [AddedToken(content, special=False, normalized=False) for content in contents]


def byte_level(split, normalizer, ignore_merges, ends, tokens):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLITS[split]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False))
    tokenizer.add_special_tokens(ends)
    tokenizer.add_tokens(tokens)
    return json.loads(tokenizer.to_str())


def sentence_pieces(normalizer, pre_tokenizer, strips, ends, tokens):
    """Byte fallback, and `▁` for a space."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizer
    # Words are told apart for the training alone.
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    first = [token.content for token in ends] + bytes_
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=400, special_tokens=first, show_progress=False))
    file = json.loads(tokenizer.to_str())
    names = {token.content for token in ends}
    file["added_tokens"] = [token for token in file["added_tokens"] if token["content"] in names]
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.pre_tokenizer = pre_tokenizer
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if strips else []))
    tokenizer.add_tokens(tokens)
    return json.loads(tokenizer.to_str())


def kinds():
    yield "qwen", byte_level(
        "qwen",
        normalizers.NFC(),
        False,
        special("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
        plain("<tool_call>", "</tool_call>", "<think>", "</think>"),
    )
    yield "llama3", byte_level(
        "llama3", None, True, special("<|begin_of_text|>", "<|im_start|>", "<|eot_id|>"), plain("<think>", "</think>")
    )
    prefix = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    yield "mistral", sentence_pieces(prefix, None, True, special("<unk>", "<s>", "</s>"), [])
    yield "gemma", sentence_pieces(
        normalizers.Replace(" ", "▁"),
        pre_tokenizers.Split(" ", "merged_with_previous"),
        False,
        special("<pad>", "<eos>", "<bos>", "<unk>"),
        plain("<unused0>", "\n\n", "▁▁", "<think>"),
    )


def token_bytes(tokenizer, id_, is_byte_level, added):
    """The bytes of a token by its name, which must be what decoding gives where they are text."""
    piece = tokenizer.convert_ids_to_tokens(id_)
    if is_byte_level:
        inverse = {char: byte for byte, char in bytes_to_unicode().items()}
        found = piece.encode() if id_ in added else bytes(inverse[char] for char in piece)
    elif len(piece) == 6 and piece.startswith("<0x"):
        found = bytes([int(piece[3:5], 16)])
    else:
        found = piece.replace("▁", " ").encode()
    anchor = tokenizer.convert_tokens_to_ids("a")
    before, both = (tokenizer.decode(ids, clean_up_tokenization_spaces=False) for ids in ([anchor], [anchor, id_]))
    text = both.removeprefix(before)
    assert "\ufffd" in text or text.encode() == found, (piece, text, found)
    return found


def main():
    HERE.mkdir(exist_ok=True)
    expected = {}
    for name, file in kinds():
        (HERE / f"{name}.json").write_text(json.dumps(file, ensure_ascii=False) + "\n")
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(HERE / f"{name}.json"))
        added = {token["id"]: token["special"] for token in file["added_tokens"]}
        is_byte_level = file["decoder"]["type"] == "ByteLevel"
        tokens = []
        for id_ in range(len(tokenizer)):
            if added.get(id_):
                tokens.append(["special", tokenizer.convert_ids_to_tokens(id_).encode().hex()])
            else:
                kind = "added" if id_ in added else "normal"
                tokens.append([kind, token_bytes(tokenizer, id_, is_byte_level, added).hex()])
        texts = [[text, tokenizer.encode(text, add_special_tokens=False)] for text in TEXTS]
        expected[name] = dict(tokens=tokens, texts=texts)
        print(name, len(tokens), texts[0])
    (HERE / "expected.json").write_text(json.dumps(expected, ensure_ascii=False) + "\n")


main()
