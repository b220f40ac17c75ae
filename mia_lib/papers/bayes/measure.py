"""What the chapter on Bayes-optimal attacks measures: the networks of Sablayrolles et al. (2019), Tables 2 and 3."""

from __future__ import annotations

from mia_lib.papers.banks import PROBE, answers
from mia_lib.published import measurement

# Table 2: 15,000 members of 30,000 records of CIFAR-10, two convolutions and two layers with tanh, 50 epochs, a rate of .001.
TANH = {"dataset": "cifar10", "architecture": "tanh_cnn:16,32,128", "records": 30_000, "epochs": 50, "batch_size": 64,
        "optimizer": "adam", "learning_rate": 1e-3, "weight_decay": 0.0, "schedule": "constant", "outputs": 2000}
TANH_PROBE = {"index": range(1, 3), "dataset": "fashion_mnist_20k", "architecture": "tanh_cnn:4,8,16", "records": 200,
              "epochs": 2, "outputs": 50}
# Table 3: one half of a set, without augmentation and with two kinds; CIFAR-100 and small ResNets in the place of ImageNet.
HALVES = {"dataset": "cifar100", "architecture": "resnet18", "epochs": 30, "batch_size": 512, "learning_rate": 0.4,
          "weight_decay": 5e-4, "precision": "bfloat16", "asked": 10_000}
HALVES_PROBE = {**PROBE, "augmentation": "flip_resized_crop:0.3", "precision": "float32", "asked": 150}

table2 = measurement("bayes/table2", probe=TANH_PROBE, **TANH)(answers)
table3 = measurement("bayes/table3", probe=HALVES_PROBE, **HALVES)(answers)
