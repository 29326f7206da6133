"""The losses of TRL's trainers, step by step."""
import datasets
import torch
import transformers
import trl
from peft import PeftModel
from trl.experimental.cpo import CPOConfig, CPOTrainer
from trl.experimental.orpo import ORPOConfig, ORPOTrainer

import inputs

datasets.disable_progress_bars()
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
RATE = 1e-4
TRAINERS = {
    "sft": (trl.SFTTrainer, trl.SFTConfig),
    "dpo": (trl.DPOTrainer, trl.DPOConfig),
    "kto": (trl.KTOTrainer, trl.KTOConfig),
    "orpo": (ORPOTrainer, ORPOConfig),
    "cpo": (CPOTrainer, CPOConfig),
    "simpo": (CPOTrainer, CPOConfig),
    "orm": (trl.RewardTrainer, trl.RewardConfig),
}


def model_of(method, folder, adapter):
    kind = transformers.AutoModelForSequenceClassification if method == "orm" else transformers.AutoModelForCausalLM
    more = {"num_labels": 1} if method == "orm" else {}
    model = kind.from_pretrained(folder, dtype=torch.float32, **more)
    return PeftModel.from_pretrained(model, adapter, is_trainable=True) if adapter else model


def losses(method, folder, rows, output, adapter=None, epochs=3, **settings):
    """The loss of each optimizer step on these rows, in their order."""
    trainer_class, config_class = TRAINERS[method]
    config = config_class(output_dir=output, per_device_train_batch_size=inputs.BATCH, num_train_epochs=epochs, learning_rate=RATE,
                          max_length=inputs.MAX_LENGTH, logging_steps=1, save_strategy="no", report_to="none", bf16=False, use_cpu=True,
                          gradient_checkpointing=False, disable_tqdm=True, train_sampling_strategy="sequential", **settings)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    trainer = trainer_class(model=model_of(method, folder, adapter), args=config, train_dataset=datasets.Dataset.from_list(rows), processing_class=tokenizer)
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    return [step["loss"] for step in trainer.state.log_history if "loss" in step]
