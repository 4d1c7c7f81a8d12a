#!/usr/bin/env bash
# What scripts/train_ppo.sh, train_grpo.sh and train_r1.sh share: arguments -> search-r1 train.
set -euo pipefail

algorithm=${1:?name the config: ppo, grpo or r1}
shift

usage() {
  cat <<TEXT
Usage: bash scripts/train_$algorithm.sh --model MODEL --train FILE --val FILE [options] [FIELD=VALUE ...]

Trains a policy with the paper's settings for eight 80 GB GPUs (configs/$algorithm.yaml). The same
command resumes a run that was stopped.

  --model MODEL  A Hugging Face name or folder: Qwen/Qwen2.5-3B, Qwen/Qwen2.5-7B-Instruct, ...
  --train FILE   Training questions, parquet (made by search-r1 prepare).
  --val FILE     Held-out questions, parquet.
  --name NAME    Name of the run, of its folder in runs/ and in wandb
                 (default: $algorithm-MODEL, in lower case).
  --nodes N      Nodes of eight GPUs (default 1); more need a Ray cluster (ray start on each node)
                 and RAY_ADDRESS=auto.
  --check        Only check the config; exit code 2 if it cannot run.
  --dry-run      Only print the whole config and the command.
  FIELD=VALUE    Any other setting, for example search.urls=[http://10.0.0.5:8000/retrieve]
                 or trainer.total_training_steps=100 (see configs/base.yaml).
TEXT
}

fail() {
  echo "train_$algorithm: $1" >&2
  exit 2
}

# A value as hydra reads it: between quotes if it holds spaces, commas, equal signs and the like.
quoted() {
  [[ $1 =~ ^[A-Za-z./_][A-Za-z0-9./_:+-]*$ ]] && printf '%s' "$1" && return
  local value=${1//\\/\\\\}
  printf "'%s'" "${value//\'/\\\'}"
}

model="" train="" val="" name="" nodes=1
rest=()
while (($#)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --model | --train | --val | --name | --nodes)
      [[ -n ${2:-} ]] || fail "$1 needs a value (see --help)"
      printf -v "${1#--}" '%s' "$2"
      shift 2 ;;
    --check | --dry-run) rest+=("$1"); shift ;;
    -*) fail "unknown option $1 (see --help)" ;;
    *=* | \~*) rest+=("$1"); shift ;;
    *) fail "$1 is neither an option nor FIELD=VALUE (see --help)" ;;
  esac
done
for option in model train val; do
  [[ -n ${!option} ]] || fail "--$option is missing (see --help)"
done
[[ $nodes =~ ^[1-9][0-9]*$ ]] || fail "--nodes takes a whole number from 1, not $nodes"

if [[ -z $name ]]; then
  name=${model%/}
  name=$algorithm-${name##*/}
  name=${name,,}
fi

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
search_r1=$(command -v search-r1 || echo "$root/.venv/bin/search-r1")
[[ -x $search_r1 ]] || fail "search-r1 is not installed: run bash scripts/setup.sh gpu"

exec "$search_r1" train "$algorithm" \
  "actor_rollout_ref.model.path=$(quoted "$model")" \
  "data.train_files=$(quoted "$train")" \
  "data.val_files=$(quoted "$val")" \
  "trainer.experiment_name=$(quoted "$name")" \
  "trainer.nnodes=$nodes" \
  "${rest[@]}"
