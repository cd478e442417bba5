"""Writes the golden checkpoints beside this file with Hugging Face transformers.

    pip install torch transformers safetensors
    python export.py

Each folder holds a small model with random weights (`config.json`, `model.safetensors`) and
`expected.json`: right-aligned prompts, the logits after every token of one batch, the logits after the
last token of every prompt, and 32 greedy tokens for each. Everything is computed in f32 on the CPU.
"""

import json
import pathlib

import torch
from transformers import LlamaConfig, LlamaForCausalLM

HERE = pathlib.Path(__file__).parent
STEPS = 32

BASE = dict(
    vocab_size=128,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=4,
    max_position_embeddings=128,
    rms_norm_eps=1e-5,
    bos_token_id=1,
    eos_token_id=2,
)
MODELS = {
    "tied_mha": dict(BASE, tie_word_embeddings=True),
    "untied_gqa": dict(
        BASE,
        tie_word_embeddings=False,
        num_hidden_layers=3,
        hidden_size=48,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=12,
        rms_norm_eps=1e-6,
        eos_token_id=[2, 3],
    ),
    # The original length is short, so that all three ranges of the scaling occur within 128 positions.
    "llama3_rope": dict(
        BASE,
        tie_word_embeddings=False,
        hidden_size=48,
        num_attention_heads=3,
        num_key_value_heads=1,
        rope_parameters=dict(
            rope_type="llama3",
            rope_theta=500.0,
            factor=8.0,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
            original_max_position_embeddings=32,
        ),
    ),
}


def export(name, settings, seed):
    torch.manual_seed(seed)
    config = LlamaConfig(**settings)
    config._attn_implementation = "eager"
    model = LlamaForCausalLM(config).float().eval()
    # Weights of the usual size would leave the layers without effect, and norms of all ones would hide a
    # norm that forgets its weight.
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.copy_(1 + 0.2 * torch.randn_like(parameter))
            elif "embed" in parameter_name:
                parameter.normal_(std=0.15)
            else:
                parameter.normal_(std=1.5 / parameter.shape[1] ** 0.5)
    folder = HERE / name
    model.save_pretrained(folder, safe_serialization=True)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "model.safetensors").chmod(0o644)

    batch = torch.randint(4, config.vocab_size, (2, 9))
    prompts = [torch.randint(4, config.vocab_size, (n,)) for n in (5, 11, 1)]
    with torch.no_grad():
        logits = model(batch).logits
        last, greedy = [], []
        for prompt in prompts:
            ids = prompt.tolist()
            last.append(model(prompt[None]).logits[0, -1].tolist())
            for _ in range(STEPS):
                scores = model(torch.tensor([ids])).logits[0, -1]
                top = scores.topk(2).values
                assert top[0] - top[1] > 1e-3, f"{name}: a greedy choice is a near tie; change the seed"
                ids.append(int(scores.argmax()))
            greedy.append(ids[len(prompt) :])
    expected = dict(
        batch=batch.tolist(),
        logits=[[[round(x, 7) for x in row] for row in rows] for rows in logits.tolist()],
        prompts=[p.tolist() for p in prompts],
        last=[[round(x, 7) for x in row] for row in last],
        greedy=greedy,
    )
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")
    print(name, sum(p.numel() for p in model.parameters()), "parameters", greedy[0])


for name, settings in MODELS.items():
    for seed in range(100):
        try:
            export(name, settings, seed)
            break
        except AssertionError as error:
            print(error, "- seed", seed)
