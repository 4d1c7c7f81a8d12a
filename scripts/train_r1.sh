#!/usr/bin/env bash
# Trains the baseline without a search engine: bash scripts/train_r1.sh --help
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/train.sh" r1 "$@"
