# Training on NVIDIA GPUs. Build: docker build -t search-r1 .
# Run, with a retrieval server on the same host:
#      docker run --gpus all --ipc=host --network host -v $PWD/data:/data -v $PWD/runs:/app/runs search-r1 \
#        bash scripts/train_ppo.sh --model Qwen/Qwen2.5-7B --train /data/train.parquet --val /data/nq.parquet
FROM nvidia/cuda:13.0.1-devel-ubuntu22.04

ENV DEBIAN_FRONTEND=noninteractive PATH=/app/.venv/bin:$PATH
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3.11 python3.11-dev python3.11-venv git curl build-essential libnuma1 \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app

# The pinned packages come first: they change less often than the code.
COPY requirements requirements
RUN python3.11 -m venv .venv \
 && .venv/bin/pip install --no-cache-dir -r requirements/bootstrap.txt \
 && .venv/bin/uv pip install --no-cache --python .venv/bin/python --no-deps --compile-bytecode -r requirements/gpu.txt \
 && .venv/bin/uv pip install --no-cache --python .venv/bin/python --no-build-isolation --no-deps -r requirements/flash-attn.txt

COPY . .
RUN .venv/bin/uv pip install --no-cache --python .venv/bin/python --no-deps -e .
CMD ["search-r1", "doctor"]
