#!/usr/bin/env bash
# Trains with GRPO at the paper's settings: bash scripts/train_grpo.sh --help
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/train.sh" grpo "$@"
