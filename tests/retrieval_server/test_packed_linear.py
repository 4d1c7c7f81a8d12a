"""Packed linear layers compute what plain ones do."""

import pytest

from retrieval_server.encoder import Dtype

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 0.1)])
def test_a_packed_model_computes_the_same(dtype: str, tolerance: float) -> None:
    import torch
    from torch import nn

    from retrieval_server.packed_linear import PackedLinear, pack_linears

    torch.manual_seed(0)
    layers = nn.ModuleList([nn.Linear(24, 8), nn.Linear(8, 3, bias=False)])
    model = nn.Sequential(layers[0], nn.Sequential(nn.GELU(), layers[1]))
    model.to(getattr(torch, dtype)).eval()
    inputs = torch.randn(5, 7, 24).to(getattr(torch, dtype))
    with torch.inference_mode():
        expected = model(inputs)
        pack_linears(model)
        found = model(inputs)
    assert found.dtype == expected.dtype
    assert torch.allclose(found.float(), expected.float(), atol=tolerance)
    packs = torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    assert isinstance(model[0], PackedLinear) is packs
    assert isinstance(model[1][1], PackedLinear) is packs


def test_what_onednn_does_not_pack_stays() -> None:
    import torch
    from torch import nn

    from retrieval_server.packed_linear import pack_linears

    model = nn.Sequential(nn.Linear(4, 4)).to(torch.float16)
    pack_linears(model)
    assert type(model[0]) is nn.Linear


@pytest.mark.parametrize(
    ("dtype", "multiplied", "warned"),
    [("bfloat16", False, True), ("bfloat16", True, False), ("float32", False, False)],
)
def test_emulated_bfloat16_is_warned_of(
    dtype: Dtype,
    multiplied: bool,
    warned: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    import torch
    from torch import nn

    from retrieval_server.packed_linear import prepare_to_infer

    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: multiplied)
    model = nn.Sequential(nn.Linear(4, 4))
    prepare_to_infer(model, dtype)
    assert not model.training
    assert [("--dtype float32" in message) for message in caplog.messages] == [True] * warned
