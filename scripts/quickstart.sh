#!/usr/bin/env bash
# The whole pipeline on one machine without a GPU: prepare, serve, warm-start, train, compare.
# Usage: bash scripts/quickstart.sh [--algorithm grpo|ppo] [--steps N] [--output DIR]
# Everything lands in DIR (runs/quickstart-ALGORITHM); started again, it reuses what is there.
set -euo pipefail
cd "$(dirname "$0")/.."

algorithm=grpo steps= output=
usage() { sed -n '2,4s/^# //p' "$0"; exit "$1"; }
while [ $# -gt 0 ]; do
  case $1 in
    --algorithm) algorithm=${2:?--algorithm needs grpo or ppo}; shift 2 ;;
    --steps) steps=${2:?--steps needs a number}; shift 2 ;;
    --output) output=${2:?--output needs a folder}; shift 2 ;;
    -h | --help) usage 0 ;;
    *) echo "quickstart: unknown argument $1" >&2; usage 2 >&2 ;;
  esac
done
case $algorithm in grpo | ppo) ;; *) echo "quickstart: --algorithm must be grpo or ppo" >&2; exit 2 ;; esac
output=${output:-runs/quickstart-$algorithm}

started=$SECONDS
say() { printf '\n[%3d s] %s\n' $((SECONDS - started)) "$*"; }

bash scripts/setup.sh cpu
export PATH=$PWD/.venv/bin:$PATH HF_HUB_OFFLINE=1
started=$SECONDS  # installation is not counted
shared=runs/quickstart
mkdir -p "$shared" "$output"

say "Preparing two fictional worlds: one to learn the tags in, one to train and test in"
[ -f $shared/school/manifest.json ] || search-r1 prepare world --output $shared/school --articles 400 --seed 2 --hops 1 --train-questions 600 --test-questions 64
[ -f $shared/world/manifest.json ] || search-r1 prepare world --output $shared/world --articles 400 --seed 1 --hops 1 --train-questions 1000 --test-questions 64
search-r1 prepare index --corpus $shared/world/corpus.jsonl --output $shared/world/index --encoder minilm
search-r1 prepare model --output $shared/smollm2

# Four in ten demonstrations answer with any name they read, so that RL is left something to learn.
say "Warm start: the tag protocol, from the first world (4 to 10 minutes)"
[ -f $shared/demonstrations.parquet ] || search-r1 prepare demonstrations --world $shared/school --model $shared/smollm2 --output $shared/demonstrations.parquet --count 200 --gold-share 0.6
[ -d $shared/policy ] || search-r1 warm-start --model $shared/smollm2 --data $shared/demonstrations.parquet --output $shared/policy

port=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
say "Starting the retrieval server (log: $output/server.log)"
bash scripts/launch_retriever.sh $shared/world/index "$port" --detach "$output/server.log" -- --threads 1
trap 'kill "$(cat "$output/server.log.pid")" 2>/dev/null || true' EXIT

if [ "$algorithm" = grpo ]; then
  batch=4 steps=${steps:-14}  # four questions a step, five trajectories each
else
  batch=20 steps=${steps:-8}  # one trajectory each
fi

say "Training $steps steps of $algorithm; starting verl, Ray and vLLM takes 3 minutes (log: $output/train.log)"
search-r1 train cpu_quickstart algo="$algorithm" trainer.experiment_name="quickstart-$algorithm" \
  output_dir="$output" trainer.total_training_steps="$steps" trainer.test_freq="$steps" trainer.save_freq="$steps" \
  data.train_batch_size=$batch data.train_files=$shared/world/train.parquet data.val_files=$shared/world/test.parquet \
  actor_rollout_ref.model.path=$shared/policy search.urls="[http://127.0.0.1:$port/retrieve]" \
  >"$output/train.log" 2>&1 &
training=$!
tail --pid=$training -n +1 -F "$output/train.log" 2>/dev/null | grep --line-buffered -oE 'search-r1 \|.*' || true
wait $training || { tail -30 "$output/train.log" >&2; exit 1; }

say "Before and after, and one whole trajectory"
search-r1 summary "$output"
search-r1 view "$output/validation/$steps.jsonl"
say "Done. Trajectories: $output/validation; curves: tensorboard --logdir $output/tensorboard"
