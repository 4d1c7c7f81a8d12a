"""What ``search-r1 train --help`` teaches, in markdown."""

TRAIN_EXAMPLES = """
Shipped configs:

* cpu_quickstart: SmolLM2-135M on a machine without a GPU

* grpo: the paper's GRPO on eight 80 GB GPUs

* ppo: the paper's PPO on eight 80 GB GPUs

* r1: the paper's baseline without a search engine; any config becomes one with
search.max_searches=0, on the same data, and then needs no server

Examples:

* `search-r1 train cpu_quickstart data.train_files=train.parquet data.val_files=test.parquet
actor_rollout_ref.model.path=runs/smollm2`

* `search-r1 train ppo --check trainer.experiment_name=ppo-7b data.train_files=train.parquet
data.val_files=test.parquet actor_rollout_ref.model.path=Qwen/Qwen2.5-7B`

* `search-r1 train my_config.yaml trainer.total_training_steps=100 --dry-run`
"""
