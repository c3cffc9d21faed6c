"""Train one of 40 architectures for two steps, with random weights and one layer: `models.py NAME`."""

import sys
from collections.abc import Mapping

import torch
from measurements import DEVICE

TEXT = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
DECODER = {**TEXT, "num_key_value_heads": 2}
IMAGE = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
    "num_labels": 4,
}
HALF_NEOX = {**TEXT, "rotary_pct": 0.5}
OLDER = {"vocab_size": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
BART = {
    **OLDER,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "dropout": 0.0,
    "decoder_start_token_id": 1,
    "forced_eos_token_id": None,
}
T5 = {
    "vocab_size": 64,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 1,
    "num_heads": 4,
    "dropout_rate": 0.0,
    "decoder_start_token_id": 0,
    "pad_token_id": 0,
}
WHISPER = {**BART, "num_mel_bins": 16, "max_source_positions": 32, "max_target_positions": 32, "vocab_size": 64}
GPT = {**OLDER, "n_embd": 32, "n_layer": 1, "n_head": 4, "n_positions": 64}
SWIN = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4}
STAGES = {"hidden_sizes": [8, 16], "depths": [1, 1], "num_labels": 4}

# name: the model's class in transformers, and what its config has
CONFIGS: dict[str, tuple[str, Mapping[str, object]]] = {
    "bert": ("BertForSequenceClassification", {**TEXT, **NO_DROPOUT}),
    "bert_dropout": ("BertForSequenceClassification", TEXT),
    "roberta": ("RobertaForMaskedLM", {**TEXT, **NO_DROPOUT}),
    "distilbert": (
        "DistilBertForMaskedLM",
        {"vocab_size": 64, "dim": 32, "n_layers": 1, "n_heads": 4, "hidden_dim": 64, "dropout": 0.0}
        | {"attention_dropout": 0.0, "max_position_embeddings": 64},
    ),
    "albert": ("AlbertForMaskedLM", {**TEXT, **NO_DROPOUT, "embedding_size": 16}),
    "electra": ("ElectraForMaskedLM", {**TEXT, **NO_DROPOUT, "embedding_size": 16}),
    "deberta_v2": ("DebertaV2ForMaskedLM", {**TEXT, **NO_DROPOUT, "relative_attention": True}),
    "modernbert": ("ModernBertForMaskedLM", {**TEXT, "cls_token_id": 1, "sep_token_id": 2}),
    "gpt2": ("GPT2LMHeadModel", {**GPT, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}),
    "gpt2_dropout": ("GPT2LMHeadModel", GPT),
    "gptj": ("GPTJForCausalLM", {**GPT, "rotary_dim": 4, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}),
    "gpt_neox": ("GPTNeoXForCausalLM", TEXT),
    "bloom": (
        "BloomForCausalLM",
        {**OLDER, "hidden_size": 32, "n_layer": 1, "n_head": 4, "hidden_dropout": 0.0, "attention_dropout": 0.0},
    ),
    "opt": (
        "OPTForCausalLM",
        {**OLDER, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "ffn_dim": 64}
        | {"max_position_embeddings": 64, "word_embed_proj_dim": 32, "dropout": 0.0},
    ),
    "falcon": ("FalconForCausalLM", {**TEXT, "new_decoder_architecture": True, "num_kv_heads": 2}),
    "llama": ("LlamaForCausalLM", DECODER),
    "mistral": ("MistralForCausalLM", {**DECODER, "sliding_window": 8}),
    "qwen2": ("Qwen2ForCausalLM", DECODER),
    "qwen3": ("Qwen3ForCausalLM", {**DECODER, "head_dim": 8}),
    "qwen3_moe": (
        "Qwen3MoeForCausalLM",
        {**DECODER, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
    ),
    "phi": ("PhiForCausalLM", DECODER),
    "gemma2": ("Gemma2ForCausalLM", {**DECODER, "head_dim": 8}),
    "olmo2": ("Olmo2ForCausalLM", DECODER),
    "granite": ("GraniteForCausalLM", DECODER),
    "mamba": ("MambaForCausalLM", {**OLDER, "hidden_size": 32, "num_hidden_layers": 1, "state_size": 4}),
    "t5": ("T5ForConditionalGeneration", T5),
    "bart": ("BartForConditionalGeneration", BART),
    "whisper": ("WhisperForConditionalGeneration", WHISPER),
    "vit": ("ViTForImageClassification", IMAGE),
    "deit": ("DeiTForImageClassification", IMAGE),
    "dinov2": ("Dinov2ForImageClassification", IMAGE),
    "swin": ("SwinForImageClassification", {**SWIN, "num_labels": 4, "drop_path_rate": 0.0}),
    "convnext": ("ConvNextForImageClassification", {**STAGES, "num_stages": 2, "image_size": 32}),
    "resnet": ("ResNetForImageClassification", {**STAGES, "embedding_size": 8, "layer_type": "basic"}),
}
TIMM = ("test_resnet", "test_vit", "test_convnext", "test_efficientnet", "test_byobnet", "test_nfnet")


def transformers_model(name: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """A model and a batch with labels."""
    import transformers

    kind, sizes = CONFIGS[name]
    model_class = getattr(transformers, kind)
    config = model_class.config_class(**sizes)
    model: torch.nn.Module = model_class(config)
    if "Image" in kind:
        images = torch.randn(2, 3, 32, 32)
        return model, {"pixel_values": images, "labels": torch.tensor([0, 3])}
    ids = torch.randint(3, 64, (2, 16))
    if name == "whisper":
        return model, {"input_features": torch.randn(2, 16, 64), "labels": ids[:, :8].contiguous()}
    if kind.endswith("SequenceClassification"):
        return model, {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": torch.tensor([0, 1])}
    return model, {"input_ids": ids, "labels": ids.clone()}


class WithLoss(torch.nn.Module):
    """A model of timm, called as those of transformers are."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": torch.nn.functional.cross_entropy(self.model(images), labels)}


def timm_model(name: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """A model and a batch with labels."""
    import timm

    sizes = {"img_size": 64} if "vit" in name else {}
    model = WithLoss(timm.create_model(name, num_classes=4, **sizes))
    return model, {"images": torch.randn(2, 3, 64, 64), "labels": torch.tensor([0, 3])}


def main(name: str) -> None:
    torch.manual_seed(0)
    model, batch = timm_model(name) if name in TIMM else transformers_model(name)
    batch = {key: value.to(DEVICE) for key, value in batch.items()}
    compiled = torch.compile(model.to(DEVICE).train())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        loss = compiled(**batch)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"{loss.item():.3f}")


if __name__ == "__main__":
    main(sys.argv[1])
