#!/usr/bin/env bash
# The `Trainer` of transformers divides the loss of `GPT2LMHeadModel` by all labels, also the first of each text, which is not predicted.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 transformers==5.24.0 accelerate==1.15.0
"$work/bin/python" -I - "$work/runs" <<'END'
import sys

import torch
import transformers
from torch.nn.functional import cross_entropy

print(f"Python {sys.version.split()[0]}, transformers {transformers.__version__}, PyTorch {torch.__version__}")
torch.manual_seed(0)
length = 8
texts = torch.randint(12, (16, length))
gpt = transformers.GPT2Config(
    vocab_size=12, n_positions=length, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
)
llama = transformers.LlamaConfig(
    vocab_size=12, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
)
ratios = {}
for model in (transformers.GPT2LMHeadModel(gpt), transformers.LlamaForCausalLM(llama)):
    name = type(model).__name__
    arguments = transformers.TrainingArguments(
        sys.argv[1], max_steps=1, use_cpu=True, report_to="none", save_strategy="no", disable_tqdm=True,
        logging_strategy="no", per_device_train_batch_size=16,
    )
    trainer = transformers.Trainer(
        model,
        arguments,
        train_dataset=[{"input_ids": text, "labels": text} for text in texts],
        optimizers=(torch.optim.SGD(model.parameters(), lr=0.0), None),
    )
    found = trainer.train().training_loss
    with torch.no_grad():
        logits = model.eval()(input_ids=texts).logits[:, :-1]
        mean = float(cross_entropy(logits.flatten(0, 1), texts[:, 1:].flatten()))
    ratios[name] = found / mean
    print(f"{name}: the Trainer's loss {found:.4f}, the mean over the predicted labels {mean:.4f}, ratio {found / mean:.4f}")
as_described = (
    abs(ratios["GPT2LMHeadModel"] - (length - 1) / length) < 1e-3
    and abs(ratios["LlamaForCausalLM"] - 1.0) < 1e-3
)
print("GPT-2's loss is too small." if as_described else "CHANGED: both losses are means.")
sys.exit(not as_described)
END
