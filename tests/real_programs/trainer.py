"""Train a BERT with Hugging Face's `Trainer`: `trainer.py [dropout] [padded] [bf16]`."""

import sys
import tempfile

import torch
from measurements import DEVICE
from transformers import BertConfig, BertForSequenceClassification, PrinterCallback, Trainer, TrainingArguments

torch.manual_seed(0)
rate = 0.1 if "dropout" in sys.argv else 0.0
sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
model = BertForSequenceClassification(BertConfig(**sizes, hidden_dropout_prob=rate, attention_probs_dropout_prob=rate))
rows = [{"input_ids": torch.randint(3, 64, (16,)), "labels": at % 2} for at in range(8)]
if "padded" in sys.argv:
    for at, row in enumerate(rows):
        row["attention_mask"] = (torch.arange(16) < 8 + at).long()
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        torch_compile=True,
        use_cpu=DEVICE == "cpu",
        bf16="bf16" in sys.argv,
        per_device_train_batch_size=4,
        num_train_epochs=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        logging_strategy="no",
    )
    trainer = Trainer(model, arguments, train_dataset=rows)
    trainer.remove_callback(PrinterCallback)  # which prints times
    print(f"{trainer.train().training_loss:.4f}")
