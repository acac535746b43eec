"""Whole networks: converted in one line, trained by their ELBO, pruned, saved, loaded, deployed."""

from functools import partial

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import safetensors.torch  # noqa: E402
import transformers as hf  # noqa: E402

from logunif_kl.torch import nn  # noqa: E402
from tests.torch.nn.cases import kl_by_parameters  # noqa: E402

WORDS, TIME, EXAMPLES, STEPS = 12, 8, 64, 100
# The step of Adam is large, so that 100 steps are enough for these small networks.
RATE = 1e-2


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, 8, padding_idx=0)
        self.read = torch.nn.LSTM(8, 8, batch_first=True, bidirectional=True)
        self.tags = torch.nn.Linear(16, 3)

    def forward(self, words):
        return self.tags(self.read(self.words(words))[0])


class UNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.down = torch.nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.up = torch.nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.out = torch.nn.Conv2d(9, 1, 1)

    def forward(self, x):
        inner = torch.relu(self.norm(self.down(x)))
        return self.out(torch.cat([torch.relu(self.up(inner)), x], 1))


def gpt2():
    sizes = {"vocab_size": WORDS, "n_positions": TIME, "n_embd": 16, "n_layer": 2, "n_head": 2}
    rates = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = hf.GPT2Config(**sizes, **rates, bos_token_id=0, eos_token_id=0)
    words = (torch.arange(TIME) + torch.randint(WORDS, (EXAMPLES, 1))) % WORDS
    target = torch.cat([words[:, 1:], torch.full((EXAMPLES, 1), -100)], 1)
    return hf.GPT2LMHeadModel(config), {"input_ids": words, "use_cache": False}, target


def vit():
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    more = {"intermediate_size": 32, "image_size": 8, "patch_size": 4, "num_channels": 1}
    images = torch.randn(EXAMPLES, 1, 8, 8)
    target = (images[:, 0, :4].mean((1, 2)) > 0).long()
    model = hf.ViTForImageClassification(hf.ViTConfig(**sizes, **more, num_labels=2))
    return model, {"pixel_values": images}, target


def tagger():
    words = torch.randint(1, WORDS, (EXAMPLES, TIME))
    words[:, -2:] = 0  # padding
    return Tagger(), words, torch.where(words == 0, -100, words % 3)


def unet():
    images = torch.randn(EXAMPLES, 1, 8, 8)
    return UNet(), images, (images > 0).float()


of_time = partial(nn.categorical_log_likelihood, class_dim=-1)
MODELS = {
    "GPT-2": (gpt2, of_time),
    "ViT": (vit, nn.categorical_log_likelihood),
    "LSTM": (tagger, of_time),
    "U-Net": (unet, nn.bernoulli_log_likelihood),
}
EMBEDDINGS = {"ViT": ["vit.embeddings.cls_token", "vit.embeddings.position_embeddings"]}


# Exporting an LSTM of torch warns.
@pytest.mark.filterwarnings("ignore:The tensor attributes self.read._flat_weights")
@pytest.mark.parametrize("name", MODELS)
def test_a_whole_model(name, tmp_path):
    make, log_likelihood = MODELS[name]
    torch.manual_seed(1)
    plain, x, target = make()
    start = nn.Additive(initial=-6.0)
    model = nn.to_variational(plain, posterior=start, parameters=EMBEDDINGS.get(name))
    elbo = nn.ELBO(model, log_likelihood, 1000)
    groups = nn.parameter_groups(model, weight_decay=1e-4, lr=RATE)
    optimizer = torch.optim.AdamW(groups)
    bounds = []
    for step in range(STEPS):
        optimizer.zero_grad()
        bound = elbo(x, target, nn.linear_warm_up(step, 100, 300))
        bound.loss.backward()
        optimizer.step()
        bounds.append(bound.expected_log_likelihood.item())
    assert sum(bounds[-20:]) / 20 > 0.6 * sum(bounds[:5]) / 5

    # The KL is the sum over all Gaussian weights, and all parameters are counted.
    expected, weights = kl_by_parameters(model)
    assert nn.kl(model.double()).item() == pytest.approx(expected, rel=1e-12)
    model.float()
    found = nn.conversion(model)
    counted = sum(found.variational.values()) + sum(n for n, _ in found.left.values())
    assert counted == sum(p.numel() for p in model.parameters())
    assert not any("has no weight matrix" not in why for _, why in found.left.values())
    threshold = nn.density_threshold(model, 0.3)
    counts = nn.sparsity(model, threshold)
    rows = [layer for key, layer in counts.layers.items() if key != "not converted"]
    assert sum(layer.weights for layer in rows) == weights
    assert sum(layer.kept for layer in rows) <= 0.3 * weights + 1e-6

    # Saved, loaded, pruned, deployed.
    safetensors.torch.save_model(model, tmp_path / "model.safetensors")
    torch.manual_seed(2)
    again = nn.to_variational(make()[0], parameters=EMBEDDINGS.get(name))
    safetensors.torch.load_model(again, tmp_path / "model.safetensors")
    given = partial(_output, x=x)
    model.eval(), again.eval()
    assert (given(again) == given(model)).all()
    dense = nn.to_deterministic(model, threshold).eval()
    if hasattr(dense, "save_pretrained"):
        dense.save_pretrained(tmp_path)
        deployed = type(plain).from_pretrained(tmp_path).eval()
        assert (given(deployed) == given(dense)).all()

    # In float64, where a weight less is seen: the least ones change an output by 1e-5.
    x = {k: _wide(v) for k, v in x.items()} if isinstance(x, dict) else _wide(x)
    given, close = partial(_output, x=x), partial(torch.testing.assert_close, rtol=0.0, atol=1e-9)
    model, again = model.double(), again.double()
    reference = given(nn.to_deterministic(model, threshold).eval())
    fewer = nn.density_threshold(model, 0.295)
    assert (given(nn.to_sparse(model, fewer)) - reference).abs().max() > 1e-6
    sparse = nn.to_sparse(model, threshold)
    close(given(sparse), reference)
    close(given(nn.load_sparse(again, sparse.state_dict())), reference)
    if not isinstance(x, dict):
        exported = torch.export.export(nn.to_compact(model, threshold), (x,)).module()
        close(exported(x), reference)


def _wide(x):
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def test_saved_by_hugging_face(tmp_path):
    """With tied embeddings, whose variances are one tensor too."""
    torch.manual_seed(1)
    model = nn.to_variational(gpt2()[0])
    assert model.lm_head.log_sigma2 is model.transformer.wte.log_sigma2
    model.save_pretrained(tmp_path)
    again = nn.to_variational(gpt2()[0], posterior=nn.Additive(initial=-2.0))
    safetensors.torch.load_model(again, tmp_path / "model.safetensors")
    pairs = zip(model.state_dict().values(), again.state_dict().values(), strict=True)
    assert all(map(torch.equal, *zip(*pairs, strict=True)))
    assert again.lm_head.log_sigma2 is again.transformer.wte.log_sigma2
    plain = nn.to_deterministic(model)
    assert plain._tied_weights_keys == gpt2()[0]._tied_weights_keys


@torch.no_grad()
def _output(model, x):
    output = model(**x) if isinstance(x, dict) else model(x)
    return output.logits if hasattr(output, "logits") else output
