#!/usr/bin/env bash
# The `from_pretrained` of transformers loses a weight of a layer that the file has, if the file lacks another parameter of the layer.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet torch==2.13.0 transformers==5.24.0
"$work/bin/python" -I - "$work/saved" <<'END'
import sys

import torch
import transformers

print(f"Python {sys.version.split()[0]}, transformers {transformers.__version__}, PyTorch {torch.__version__}")
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


class Scaled(torch.nn.Linear):
    """A linear layer with one more parameter than the file has."""

    def __init__(self, *sizes):
        super().__init__(*sizes, bias=False)
        self.scale = torch.nn.Parameter(torch.ones(1))


def by_data(module):
    module.weight.data.zero_()


def by_torch_init(module):
    torch.nn.init.zeros_(module.weight)


def make(layer, initialise):
    class Model(transformers.PreTrainedModel):
        config_class = transformers.PretrainedConfig

        def __init__(self, config):
            super().__init__(config)
            self.layer = layer(1, 2)
            self.post_init()

        def _init_weights(self, module):
            if isinstance(module, torch.nn.Linear):
                initialise(module)

    return Model


def plain(*sizes):
    return torch.nn.Linear(*sizes, bias=False)


saved = make(plain, by_data)(transformers.PretrainedConfig())
torch.nn.init.constant_(saved.layer.weight, 5.0)
saved.save_pretrained(sys.argv[1])
found = {}
for layer in (plain, Scaled):
    for initialise in (by_data, by_torch_init):
        model = make(layer, initialise).from_pretrained(sys.argv[1])
        found[layer.__name__, initialise.__name__] = weight = model.layer.weight.flatten().tolist()
        print(f"{layer.__name__:6}  _init_weights {initialise.__name__:13}  the weight 5 is loaded as {weight}")
lost = [key for key, weight in found.items() if weight != [5.0, 5.0]]
if lost != [("Scaled", "by_data")]:
    sys.exit("CHANGED: the weight is kept.")
print("_init_weights runs for the whole layer again, and only functions of torch.nn.init spare what was loaded.")
END
