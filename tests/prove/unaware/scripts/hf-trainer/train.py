"""A Hugging Face Trainer as people write it: HfArgumentParser, checkpoint-N/, save_total_limit, its own resume flag.

torchrun --nproc-per-node 2 train.py --output_dir out --max_steps 120
torchrun --nproc-per-node 2 train.py --output_dir out --max_steps 120 --resume_from_checkpoint out/checkpoint-40
"""

import torch
from tqdm.auto import tqdm
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments, set_seed


class Numbers(torch.utils.data.Dataset):
    """Arithmetic sequences modulo the size of the vocabulary."""

    def __init__(self, vocab_size, length=32, size=4096):
        start = torch.randint(vocab_size, (size, 1), generator=torch.Generator().manual_seed(0))
        self.rows = (start + 7 * torch.arange(length)) % vocab_size

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def tokenized(dataset):
    """With the bar that datasets draws."""
    for _ in tqdm(range(len(dataset)), desc="Map", unit=" examples"):
        pass
    return dataset


def main():
    parser = HfArgumentParser(TrainingArguments)
    parser.set_defaults(
        max_steps=160,
        per_device_train_batch_size=8,
        learning_rate=1e-3,
        logging_steps=1,
        save_steps=20,
        save_total_limit=2,
        use_cpu=not torch.cuda.is_available(),
        report_to="none",
    )
    (training_args,) = parser.parse_args_into_dataclasses()
    set_seed(training_args.seed)

    config = GPT2Config(
        vocab_size=4096, n_positions=32, n_embd=64, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=training_args,
        train_dataset=tokenized(Numbers(config.vocab_size)),
    )
    train_result = trainer.train(resume_from_checkpoint=training_args.resume_from_checkpoint)
    trainer.save_model()
    trainer.log_metrics("train", train_result.metrics)
    trainer.save_metrics("train", train_result.metrics)
    trainer.save_state()


if __name__ == "__main__":
    main()
