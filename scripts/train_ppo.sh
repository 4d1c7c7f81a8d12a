#!/usr/bin/env bash
# Trains with PPO and a critic at the paper's settings: bash scripts/train_ppo.sh --help
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/train.sh" ppo "$@"
