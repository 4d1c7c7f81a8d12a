"""Bytes that a model takes while it is trained, as formulae over its shape.

For N tokens in a micro-batch, hidden size H, intermediate size I, query width Q = heads x head_dim
and key width K = kv_heads x head_dim. Compute runs in bfloat16 (2 bytes; on a CPU in float32, it
takes twice that) and attention is fused, so nothing grows with the square of the length.
"""

from search_r1.memory.shape import ModelShape

HALF = 2
FULL = 4


def sharded_weights(parameters: int, value_bytes: int, shards: int) -> float:
    """Parameters x bytes / shards: the weights, and each of gradients and Adam's two moments."""
    return parameters * value_bytes / shards


def gathered_weights(shape: ModelShape, *, with_output: bool) -> int:
    """2 x (2 layers + embedding + output layer): what FSDP has gathered at once.

    A layer and the one fetched ahead, and the embeddings, which stay for a whole pass.
    """
    embeddings = shape.embedding_parameters * (2 if with_output and not shape.tied else 1)
    return HALF * (2 * shape.layer_parameters + embeddings)


def layer_activations(shape: ModelShape, tokens: int) -> int:
    """N x (2 x (4 H + 2 Q + 2 K + 4 I) + 8 H): all that the backward pass of one layer reads.

    Two residuals, two norms, queries and attention output, keys and values, and the four tensors
    of the gated MLP; the norms also work in float32.
    """
    query, key = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    halves = 4 * shape.hidden + 2 * query + 2 * key + 4 * shape.intermediate
    return tokens * (HALF * halves + 2 * FULL * shape.hidden)


def stored_activations(shape: ModelShape, tokens: int, *, checkpointing: bool) -> int:
    """Over all layers: every activation; with checkpointing 2 N H a layer and one layer whole."""
    one_layer = layer_activations(shape, tokens)
    if not checkpointing:
        return shape.layers * one_layer
    return shape.layers * HALF * tokens * shape.hidden + one_layer


def logits(shape: ModelShape, tokens: int, *, backward: bool, compiled: bool) -> int:
    """N x vocabulary x (2, with 4 more in a backward pass, and 12 more if not compiled).

    The logits in bfloat16; their gradients from log-probability and entropy; and what an entropy
    that is not compiled into one kernel makes in float32: the logits, their softmax, the product.
    """
    value_bytes = HALF + (2 * HALF if backward else 0) + (0 if compiled else 3 * FULL)
    return tokens * shape.vocabulary * value_bytes


def cache_tokens(
    shape: ModelShape, cache_bytes: float, tensor_parallel: int, value_bytes: int = HALF
) -> int:
    """Tokens whose keys and values (2 x layers x K) fit in the cache of an engine."""
    per_token = shape.cache_values_per_token * value_bytes / tensor_parallel
    return int(max(cache_bytes, 0) / per_token)
