#!/usr/bin/env bash
# The Trainer of transformers resumes ViT without the parameters that `save_pretrained` renames.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 transformers==5.24.0 accelerate==1.15.0
cat >"$work/shows.py" <<'END'
import os
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers

transformers.logging.set_verbosity_error()
print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}")
sizes = {
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}
texts = [{"input_ids": t, "labels": t} for t in torch.randint(3, 12, (16, 6))]
images = [{"pixel_values": torch.randn(3, 8, 8), "labels": i % 2} for i in range(16)]
words = {"vocab_size": 12, "max_position_embeddings": 32, "pad_token_id": 0}
models = {
    transformers.LlamaForCausalLM: (words, texts),
    transformers.ViTForImageClassification: ({"image_size": 8, "patch_size": 4}, images),
}


def train(kind, options, data, folder, **resume):
    torch.manual_seed(0)
    model = kind(kind.config_class(**sizes, **options))
    arguments = transformers.TrainingArguments(
        folder,
        max_steps=4,
        save_steps=2,
        save_strategy="steps",
        per_device_train_batch_size=4,
        learning_rate=0.03,
        lr_scheduler_type="constant",
        logging_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    transformers.Trainer(model, arguments, train_dataset=data).train(**resume)
    return model.state_dict()


found = []
for kind, (options, data) in models.items():
    with tempfile.TemporaryDirectory() as folder:
        whole = train(kind, options, data, folder)
        resumed = train(
            kind, options, data, folder, resume_from_checkpoint=f"{folder}/checkpoint-2"
        )
    found.append(max(float((whole[name] - x).abs().max()) for name, x in resumed.items()))
    print(f"{kind.__name__}: largest difference of a resumed run from a whole one: {found[-1]:.2g}")
sys.exit(not (found[0] < 1e-6 and found[1] > 1e-3))
END
"$work/bin/python" -W ignore -I "$work/shows.py" || { echo "CHANGED: ViT is resumed, too."; exit 1; }
