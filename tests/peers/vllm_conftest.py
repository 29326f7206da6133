"""tests/conftest.py of vLLM: modules of vLLM and PyTorch that its tests import, as far as tests over HTTP use them. What needs vLLM itself skips."""
import importlib.abc
import importlib.machinery
import os
import sys
import types

import numpy as np
import pytest

STORIES = os.path.join(os.environ["TROUPE_ROOT"], "tests/data/models/stories260k/hf")


class Unavailable(types.ModuleType):
    """A module or a name of one: its use skips the test."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Unavailable(f"{self.__name__}.{name}")

    def __call__(self, *_, **__):
        pytest.skip(f"{self.__name__} is of vLLM's program", allow_module_level=True)

    def __mro_entries__(self, bases):
        return (object,)

    def __getitem__(self, _):
        return self

    def __or__(self, _):
        return self

    __ror__ = __or__


class Answer:
    """A JSON answer with its members as attributes; one that it does not have is an error."""

    def __init__(self, members):
        self.__dict__.update({name: Answer.of(value) for name, value in members.items()})

    @staticmethod
    def of(value):
        if isinstance(value, dict):
            return Answer(value)
        return [Answer.of(each) for each in value] if isinstance(value, list) else value

    model_validate = of


class Numbers(np.ndarray):
    def to(self, _):
        return self

    def view(self, *shape):
        return self.reshape(*shape) if shape and shape[0] == -1 else super().view(*shape)

    def norm(self, dim=-1):
        return np.linalg.norm(self, axis=dim)


def tensor(values, dtype=None):
    del dtype
    return np.asarray(values, dtype=np.float64).view(Numbers)


def softmax(x, dim=-1):
    powers = np.exp(x - x.max(axis=dim, keepdims=True))
    return powers / powers.sum(axis=dim, keepdims=True)


def small_floats(data, mantissa, bias):
    exponent, steps = (data & 127) >> mantissa, data & ((1 << mantissa) - 1)
    value = np.where(exponent > 0, (1 << mantissa) + steps, steps) * 2.0 ** (np.maximum(exponent, 1).astype(int) - bias - mantissa)
    return np.where(data & 128, -value, value)


DTYPES = {"float32": "f4", "float16": "f2", "bfloat16": "u2", "fp8_e4m3": "u1", "fp8_e5m2": "u1"}


def binary2tensor(binary, shape, embed_dtype, endianness):
    data = np.frombuffer(binary, dtype={"big": ">", "little": "<", "native": "="}[endianness] + DTYPES[embed_dtype])
    if embed_dtype == "bfloat16":
        data = (data.astype("u4") << 16).view("f4")
    elif embed_dtype.startswith("fp8"):
        data = small_floats(data.astype(int), *((3, 7) if embed_dtype == "fp8_e4m3" else (2, 15)))
    return tensor(data.reshape(shape))


class Item:
    def __init__(self, **members):
        self.__dict__.update(members)


def build_metadata_items(embed_dtype, endianness, shape, n_request):
    size = int(np.prod(shape)) * int(DTYPES[embed_dtype][1])
    return [Item(embed_dtype=embed_dtype, endianness=endianness, shape=shape, start=i * size, end=(i + 1) * size) for i in range(n_request)]


def decode_pooling_output(items, body):
    return [binary2tensor(body[item.start:item.end], tuple(item.shape), item.embed_dtype, item.endianness) for item in items]


def check_embeddings_close(*, embeddings_0_lst, embeddings_1_lst, tol=1e-3, **_):
    assert len(embeddings_0_lst) == len(embeddings_1_lst)
    for one, other in zip(embeddings_0_lst, embeddings_1_lst):
        one, other = np.asarray(one, dtype=float).ravel(), np.asarray(other, dtype=float).ravel()
        assert one @ other / (np.linalg.norm(one) * np.linalg.norm(other)) >= 1 - tol


def get_tokenizer(*_, **__):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(STORIES, legacy=False)


def real(name, **members):
    module = Unavailable(name)
    module.__dict__.update(members)
    return module


def torch_modules():
    functional = real("torch.nn.functional", softmax=softmax, sigmoid=lambda x: 1 / (1 + np.exp(-x)),
                      normalize=lambda x, p=2, dim=-1: x / np.linalg.norm(x, axis=dim, keepdims=True))
    nn = real("torch.nn", functional=functional)
    torch = real("torch", tensor=tensor, allclose=lambda a, b, atol=1e-8, **_: np.allclose(a, b, atol=atol), iinfo=np.iinfo, long=np.int64,
                 float32=np.float32, float16=np.float16, bfloat16="bfloat16", Tensor=np.ndarray, nn=nn)
    return {"torch": torch, "torch.nn": nn, "torch.nn.functional": functional}


class Hub:
    """The only folder that tests fetch is that of an adapter."""

    def snapshot_download(self, *_, **__):
        return os.environ["TROUPE_ADAPTER"]


REAL = {
    "vllm.transformers_utils.repo_utils": real("vllm.transformers_utils.repo_utils", hf_api=Hub),
    **torch_modules(),
    "vllm.tokenizers": real("vllm.tokenizers", get_tokenizer=get_tokenizer),
    "vllm.platforms": real("vllm.platforms", current_platform=Item(is_rocm=lambda: False, is_cpu=lambda: True, is_cuda=lambda: False)),
    "vllm.version": real("vllm.version", __version__="0.33.0"),
    "vllm.utils.serial_utils": real("vllm.utils.serial_utils", EMBED_DTYPES=DTYPES, ENDIANNESS=("native", "big", "little"), binary2tensor=binary2tensor),
    "vllm.entrypoints.pooling.utils": real("vllm.entrypoints.pooling.utils", MetadataItem=Item, decode_pooling_output=decode_pooling_output,
                                           build_metadata_items=build_metadata_items),
    "tests.models.utils": real("tests.models.utils", check_embeddings_close=check_embeddings_close),
}


class Protocol(Unavailable):
    """Of answers, which the tests check, and of requests, which they do not send."""

    def __getattr__(self, name):
        return Answer if name.endswith("Response") else super().__getattr__(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name in REAL or name.split(".")[0] in ("vllm", "torch", "fastapi") or name.startswith("tests.models"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        kind = Protocol if spec.name.endswith(".protocol") else Unavailable
        module = REAL.get(spec.name) or kind(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())


@pytest.fixture(scope="session")
def hf_runner():
    pytest.skip("the model of the test is not here")


vllm_runner = local_asset_server = hf_runner
LocalAssetServer = Unavailable("LocalAssetServer")
