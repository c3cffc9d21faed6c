"""Train a compiled module with Lightning."""

import logging
import warnings

import lightning
import torch
from measurements import DEVICE
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        layers = torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Linear(32, 4)
        self.layers = torch.nn.Sequential(*layers)

    def training_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


lightning.seed_everything(0, verbose=False)
batches = DataLoader(TensorDataset(torch.randn(16, 16), torch.randint(0, 4, (16,))), batch_size=8)
quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
trainer = lightning.Trainer(max_epochs=2, accelerator="gpu" if DEVICE == "cuda" else "cpu", devices=1, **quiet)
trainer.fit(torch.compile(Net()), batches)
print(f"{trainer.callback_metrics['loss'].item():.3f}")
