"""peer_models.py: the networks of sparsetrain, in PyTorch, for the scripts that measure against it. Imported, not run."""

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut without parameters (option A)."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.stride, self.pad = stride, (after - before) // 2

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        if self.stride != 1:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.pad, self.pad))
        return functional.relu(y + x, inplace=True)


class ResNet20(nn.Module):
    parameters_expected = 269722

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        widths = [16] * 4 + [32] * 3 + [64] * 3
        self.blocks = nn.Sequential(*(Block(a, b, 1 if a == b else 2) for a, b in zip(widths, widths[1:])))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.blocks(x)
        return self.linear(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class VGG16(nn.Module):
    """For 32x32 images: thirteen convolutions with batch normalisation, five poolings, one linear layer."""

    parameters_expected = 14728266

    def __init__(self):
        super().__init__()
        layers, before = [], 3
        for width in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
            if width == 0:
                layers.append(nn.MaxPool2d(2))
                continue
            layers += [nn.Conv2d(before, width, 3, 1, 1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            before = width
        self.features = nn.Sequential(*layers)
        self.linear = nn.Linear(512, 10)

    def forward(self, x):
        return self.linear(self.features(x).flatten(1))


class LSTM(nn.Module):
    """Zaremba's language model: embedding, two LSTM layers, a linear layer of its own weights; dropout between them."""

    words, sequence, batch_default, hidden_default = 10000, 35, 20, 1500

    def __init__(self, hidden=hidden_default):
        super().__init__()
        self.hidden = hidden
        # 66,034,000 for 1500: two layers of four gates with two biases, and two matrices of hidden features a word
        self.parameters_expected = 2 * 4 * hidden * (2 * hidden + 2) + self.words * (2 * hidden + 1)
        self.drop = nn.Dropout(0 if hidden < 650 else 0.5 if hidden < 1500 else 0.65)
        self.embedding = nn.Embedding(self.words, hidden)
        self.lstm1 = nn.LSTM(hidden, hidden)
        self.lstm2 = nn.LSTM(hidden, hidden)
        self.linear = nn.Linear(hidden, self.words)

    def fresh_states(self, streams, device="cpu"):
        """Hidden and cell of each layer, [1][streams][hidden]: 0."""
        return [tuple(torch.zeros(1, streams, self.hidden, device=device) for _ in range(2)) for _ in range(2)]

    def forward(self, token, states):
        """token [sequence][streams]; logits [sequence * streams][words] and the states after the last word, without
        a way back for gradients."""
        x, state1 = self.lstm1(self.drop(self.embedding(token)), states[0])
        x, state2 = self.lstm2(self.drop(x), states[1])
        after = [tuple(each.detach() for each in state) for state in (state1, state2)]
        return self.linear(self.drop(x)).flatten(0, 1), after


class Attention(nn.Module):
    """Causal attention of several heads, by PyTorch's fused function where it has one."""

    def __init__(self, context, hidden, heads, bias, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=bias)
        self.out = nn.Linear(hidden, hidden, bias=bias)
        self.register_buffer("later", torch.triu(torch.ones(context, context, dtype=torch.bool), 1), persistent=False)

    def forward(self, x):
        batch, context, hidden = x.shape
        q, k, v = (t.view(batch, context, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(hidden, dim=2))
        dropout = self.dropout if self.training else 0
        if hasattr(functional, "scaled_dot_product_attention"):
            y = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (hidden / self.heads) ** -0.5
            scores = scores.masked_fill(self.later[:context, :context], float("-inf"))
            y = functional.dropout(scores.softmax(-1), dropout) @ v
        return self.out(y.transpose(1, 2).reshape(batch, context, hidden))


class Norm(nn.Module):
    """nn.LayerNorm, whose bias can be left out in newer versions alone."""

    def __init__(self, hidden, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.bias = nn.Parameter(torch.zeros(hidden)) if bias else None

    def forward(self, x):
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Decoder(nn.Module):
    """A block of a decoder."""

    def __init__(self, context, hidden, heads, bias, dropout, form):
        super().__init__()
        self.norm1, self.norm2 = Norm(hidden, bias), Norm(hidden, bias)
        self.attention = Attention(context, hidden, heads, bias, dropout)
        self.mlp = nn.Sequential(nn.Linear(hidden, 4 * hidden, bias=bias), nn.GELU(form),
                                 nn.Linear(4 * hidden, hidden, bias=bias))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class GPT(nn.Module):
    """nanoGPT's decoder; preset: as in nets/models/gpt.c."""

    # vocabulary, context, layers, heads, hidden, biases, dropout, form of GELU; batch, parameters
    presets = {
        "char-cpu": (65, 64, 4, 4, 128, False, 0.0, "none", 12, 804096),
        "char": (65, 256, 6, 6, 384, False, 0.2, "none", 64, 10745088),
        "gpt2": (50257, 1024, 12, 12, 768, True, 0.0, "tanh", 12, 124439808),
    }
    learning = {"char-cpu": (1e-3, 0.99), "char": (1e-3, 0.99), "gpt2": (6e-4, 0.95)}  # rate, beta2

    def __init__(self, preset="char-cpu"):
        super().__init__()
        words, context, layers, heads, hidden, bias, dropout, form, batch, parameters = self.presets[preset]
        self.words, self.sequence, self.hidden, self.batch_default = words, context, hidden, batch
        self.parameters_expected = parameters
        self.embedding, self.position = nn.Embedding(words, hidden), nn.Embedding(context, hidden)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Decoder(context, hidden, heads, bias, dropout, form) for _ in range(layers)))
        self.norm = Norm(hidden, bias)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, token):
        """token [batch][context]; logits [batch * context][words]"""
        x = self.drop(self.embedding(token) + self.position.weight[: token.shape[1]])
        return functional.linear(self.norm(self.blocks(x)), self.embedding.weight).flatten(0, 1)


class Encoder(nn.Module):
    """A block of an encoder, normalised behind each part."""

    def __init__(self, hidden, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.mlp = nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden))
        self.norm1, self.norm2 = nn.LayerNorm(hidden, eps=1e-12), nn.LayerNorm(hidden, eps=1e-12)
        self.drop = nn.Dropout(dropout)

    def attention(self, x, seen):
        batch, rows, hidden = x.shape
        q, k, v = (t.view(batch, rows, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(hidden, dim=2))
        dropout = self.dropout if self.training else 0
        if hasattr(functional, "scaled_dot_product_attention"):
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=dropout)
        else:
            scores = (q @ k.transpose(-2, -1)) * (hidden / self.heads) ** -0.5
            y = functional.dropout(scores.masked_fill(~seen, float("-inf")).softmax(-1), dropout) @ v
        return self.out(y.transpose(1, 2).reshape(batch, rows, hidden))

    def forward(self, x, seen):
        x = self.norm1(x + self.drop(self.attention(x, seen)))
        return self.norm2(x + self.drop(self.mlp(x)))


class BERT(nn.Module):
    """The encoder with both tasks of its pre-training; preset: as in nets/models/bert.c."""

    words, sequence, chosen, positions = 30522, 128, 20, 512
    # layers, heads, hidden, parameters
    presets = {"tiny": (2, 2, 128, 8340284), "mini": (4, 4, 256, 19081532), "small": (4, 8, 512, 44686140),
               "base": (12, 12, 768, 133547324)}
    batch_default = 8

    def __init__(self, preset="tiny"):
        super().__init__()
        layers, heads, hidden, self.parameters_expected = self.presets[preset]
        self.hidden = hidden
        self.embedding, self.position = nn.Embedding(self.words, hidden), nn.Embedding(self.positions, hidden)
        self.segment = nn.Embedding(2, hidden)
        self.norm, self.drop = nn.LayerNorm(hidden, eps=1e-12), nn.Dropout(0.1)
        self.blocks = nn.ModuleList(Encoder(hidden, heads, 0.1) for _ in range(layers))
        self.transform = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.LayerNorm(hidden, eps=1e-12))
        self.decoder = nn.Linear(hidden, self.words)
        self.pooler, self.next = nn.Linear(hidden, hidden), nn.Linear(hidden, 2)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, token, kind, lengths, row):
        """Logits of the chosen rows [batch][chosen][words], and of what comes next [batch][2]."""
        x = self.embedding(token) + self.position.weight[: token.shape[1]] + self.segment(kind)
        x = self.drop(self.norm(x))
        seen = (torch.arange(token.shape[1], device=token.device)[None, :] < lengths[:, None])[:, None, None, :]
        for block in self.blocks:
            x = block(x, seen)
        rows = torch.gather(x, 1, row[:, :, None].expand(-1, -1, self.hidden))
        return self.decoder(self.transform(rows)), self.next(torch.tanh(self.pooler(x[:, 0])))


class Speech(nn.Module):
    """Ok-Topk's LSTM-AN4, of utterances that are all of one length, which needs no masks."""

    frames, labels, classes, batch_default = 270, 24, 29, "2,16"
    parameters_expected = 27569568

    def __init__(self, hidden=800, layers=5):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, 32, (41, 11), (2, 2), (20, 5)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20, inplace=True),
            nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20, inplace=True))
        self.lstms = nn.ModuleList(nn.LSTM(1312 if i == 0 else hidden, hidden) for i in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(layers))
        self.lookahead = nn.Conv1d(hidden, hidden, 21, groups=hidden, bias=False)
        self.linear = nn.Linear(hidden, self.classes, bias=False)

    def forward(self, x):
        """x [batch][1][161][frames]; logarithms of probabilities [steps][batch][classes]"""
        x = self.convolutions(x).flatten(1, 2).permute(2, 0, 1)
        for i, lstm in enumerate(self.lstms):
            if i > 0:
                x = self.norms[i - 1](x.flatten(0, 1)).view_as(x)
            x = lstm(x)[0]
        x = self.lookahead(functional.pad(x.permute(1, 2, 0), (0, 20))).permute(2, 0, 1)
        x = functional.hardtanh(x, 0, 20)
        return self.linear(self.norms[-1](x.flatten(0, 1))).view(*x.shape[:2], -1).log_softmax(-1)


MODELS = {"resnet20": ResNet20, "vgg16": VGG16, "lstm": LSTM, "gpt": GPT, "bert": BERT, "speech": Speech}
# As in nets/models/*.c: what a step of the model's reference takes
WEIGHT_DECAY = {"resnet20": 1e-4, "vgg16": 1e-4, "lstm": 0, "gpt": 0.1, "bert": 0.01, "speech": 1e-4}


def takes_tokens(name):
    return MODELS[name] in (LSTM, GPT, BERT)


def takes_images(name):
    return MODELS[name] in (ResNet20, VGG16)


def has_presets(name):
    return MODELS[name] in (GPT, BERT)


def open_optimiser(name, model, preset=None):
    """SGD with momentum or, of gpt and bert, AdamW, in which matrices alone decay; the fused or the many-at-once form where there
    is one."""
    if not has_presets(name):
        return torch.optim.SGD(model.parameters(), lr=1e-4 if MODELS[name] is Speech else 0.01, momentum=0.9,
                               weight_decay=WEIGHT_DECAY[name])
    rate, beta2 = GPT.learning[preset or "char-cpu"] if MODELS[name] is GPT else (2e-4, 0.999)
    groups = [{"params": [p for p in model.parameters() if (p.dim() > 1) == decays],
               "weight_decay": WEIGHT_DECAY[name] if decays else 0.0} for decays in (True, False)]
    try:
        return torch.optim.AdamW(groups, lr=rate, betas=(0.9, beta2), fused=True)
    except (TypeError, RuntimeError):
        return torch.optim.AdamW(groups, lr=rate, betas=(0.9, beta2), foreach=True)


def open_model(name, hidden=None, preset=None):
    """The network with fresh parameters, as many as sparsetrain's has; hidden: of the LSTM; preset: of gpt and bert."""
    torch.manual_seed(1)
    if has_presets(name):
        model = MODELS[name](preset or next(iter(MODELS[name].presets)))
    else:
        model = LSTM(hidden or LSTM.hidden_default) if takes_tokens(name) else MODELS[name]()
    count = sum(p.numel() for p in model.parameters())
    assert count == model.parameters_expected, (name, count)
    assert MODELS[name] is not LSTM or model.hidden != 1500 or count == 66034000, count
    return model


class Batch:
    """Random input of a model and what is kept from step to step; loss() is that of the next step."""

    def __init__(self, name, model, batch, device="cpu", layout=torch.contiguous_format):
        self.model, self.states, self.next, self.lengths = model, None, None, None
        if MODELS[name] is GPT:
            self.rows = model.sequence * batch
            self.x = torch.randint(0, model.words, (batch, model.sequence), device=device)
            self.y = torch.randint(0, model.words, (self.rows,), device=device)
        elif MODELS[name] is BERT:
            self.rows, places = model.sequence * batch, (batch, model.chosen)
            self.x = (torch.randint(0, model.words, (batch, model.sequence), device=device),
                      torch.randint(0, 2, (batch, model.sequence), device=device),
                      torch.full((batch,), model.sequence, device=device),
                      torch.randint(0, model.sequence, places, device=device))
            self.y = torch.randint(0, model.words, places, device=device)
            self.next = torch.randint(0, 2, (batch,), device=device)
        elif takes_tokens(name):
            self.rows = model.sequence * batch
            self.x = torch.randint(0, model.words, (model.sequence, batch), device=device)
            self.y = torch.randint(0, model.words, (self.rows,), device=device)
            self.states = model.fresh_states(batch, device)
        elif MODELS[name] is Speech:
            self.rows = batch
            self.x = torch.randn(batch, 1, 161, model.frames, device=device)
            self.y = torch.randint(1, model.classes, (batch, model.labels), device=device)
            self.lengths = torch.full((batch,), (model.frames + 1) // 2), torch.full((batch,), model.labels)
        else:
            self.rows = batch
            self.x = torch.randn(batch, 3, 32, 32, device=device).to(memory_format=layout)
            self.y = torch.randint(0, 10, (batch,), device=device)

    def loss(self):
        if self.next is not None:
            words, sentence = self.model(*self.x)
            return (functional.cross_entropy(words.flatten(0, 1), self.y.flatten())
                    + functional.cross_entropy(sentence, self.next))
        if self.lengths is not None:
            return functional.ctc_loss(self.model(self.x), self.y, *self.lengths, reduction="sum") / self.rows
        if self.states is None:
            return functional.cross_entropy(self.model(self.x), self.y)
        logits, self.states = self.model(self.x, self.states)
        return functional.cross_entropy(logits, self.y)


def magnitudes(n, device="cpu"):
    """[n]: normal numbers whose scale wanders from layer to layer, as in `sparsetrain bench select`."""
    torch.manual_seed(1)
    layer = torch.exp(2.0 * ((torch.arange(n, device=device) // 16384) % 64) / 64.0)
    return (torch.randn(n, device=device) * layer * 3e-3).abs()
