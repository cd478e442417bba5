"""XGrammar's kernel that applies a bitmask to logits, timed on CUDA beside a copy of the logits.

usage: xgrammar.py build TOOLS OUT   fetches XGrammar's wheel with pip and compiles its kernel, without a GPU
       xgrammar.py run OUT           prints a table; it needs the driver alone

TOOLS holds NVRTC, ptxas and the headers of the runtime, as `scripts/gpu sass` fetches them. OUT gets the machine code of the
kernel and the names of its variants; the source stays in the wheel (Apache-2.0).
"""

import ctypes
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

SOURCE = "xgrammar/kernels/apply_token_bitmask_inplace_cuda.cu"
# The types of logits, with the number that a thread moves at once.
TYPES = {"f32": ("float", 4, 4), "bf16": ("__nv_bfloat16", 8, 2)}
BITS = (4, 8, 16, 32)
THREADS = 256
VOCABULARY = 128_256
BATCHES = (1, 8, 64, 512)
# Logits of all sets, so that caches do not hold them.
BYTES = 512 << 20


def build(tools, out):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "sass"))
    from nvrtc import Nvrtc, found

    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "xgrammar"]
        subprocess.run(pip, check=True)
        wheel = next(pathlib.Path(folder).glob("*.whl"))
        text = zipfile.ZipFile(wheel).read(SOURCE).decode()
    version = wheel.name.split("-")[1]
    # The kernel and what it needs; the rest of the file launches it through PyTorch.
    begin, end = text.index("constexpr int32_t BITS_PER_BLOCK"), text.index("template <typename T, typename = std::enable_if_t")
    head = "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\ntypedef int int32_t;\ntypedef unsigned int uint32_t;\n"
    infinities = "#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7C00U)\n"
    infinities += "#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7F80U)\n#define INFINITY __int_as_float(0x7f800000)\n"
    kernels = "".join(
        f"template __global__ void LogitsBitmaskKernel<{name}, float4, {bits}>"
        f"({name}*, const int32_t*, const int32_t*, int32_t, int32_t, int32_t);\n"
        for name, _, _ in TYPES.values()
        for bits in BITS
    )
    ptx = Nvrtc(tools, "sm_90").ptx((head + infinities + text[begin:end] + kernels).encode())
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        ptxas = [found(tools, "ptxas"), "-arch=sm_90", file.name, "-o", out / "xgrammar.cubin"]
        subprocess.run(ptxas, check=True)
    # A mangled name holds the types and the number of bits.
    entries = re.findall(r"\.entry (\w+)", ptx.decode())
    variants = {
        f"{kind} {bits}": next(e for e in entries if f"Li{bits}E" in e and ("bfloat16" in e) == (kind == "bf16"))
        for kind in TYPES
        for bits in BITS
    }
    (out / "xgrammar.json").write_text(json.dumps({"version": version, "variants": variants}))


class Cuda:
    """The driver's interface, as far as it is needed."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        code = getattr(self.driver, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name} fails with {code}")

    def memory(self, size):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer.value

    def event(self):
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def microseconds(self, work):
        """The time of what `work` launches on a stream, the median of 20. It is recorded once and replayed, because Python takes
        longer for a launch than a GPU for a small kernel."""
        stream, graph, replay = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 0)
        # The first run also loads the kernel.
        work(stream)
        self.call("cuStreamSynchronize", stream)
        self.call("cuStreamBeginCapture_v2", stream, 0)
        work(stream)
        self.call("cuStreamEndCapture", stream, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(replay), graph, ctypes.c_ulonglong(0))
        begin, end, times = self.event(), self.event(), []
        for _ in range(21):
            self.call("cuEventRecord", begin, stream)
            self.call("cuGraphLaunch", replay, stream)
            self.call("cuEventRecord", end, stream)
            self.call("cuEventSynchronize", end)
            time = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(time), begin, end)
            times.append(1000 * time.value)
        self.call("cuGraphExecDestroy", replay)
        self.call("cuGraphDestroy", graph)
        self.call("cuStreamDestroy_v2", stream)
        return sorted(times[1:])[len(times[1:]) // 2]


def ceil(number, by):
    return -(-number // by)


def run(folder):
    cuda, names = Cuda(), json.loads((folder / "xgrammar.json").read_text())
    module = ctypes.c_void_p()
    cuda.call("cuModuleLoadData", ctypes.byref(module), (folder / "xgrammar.cubin").read_bytes())
    print(f"XGrammar {names['version']}, `apply_token_bitmask_inplace`, V = {VOCABULARY}\n")
    print("| type | batch | legal | copy µs | mask µs | mask ÷ copy |")
    print("|---|---:|---|---:|---:|---:|")
    words = ceil(VOCABULARY, 32)
    for kind, (_, lanes, size) in TYPES.items():
        for batch in BATCHES:
            row = batch * VOCABULARY * size
            sets = max(1, min(64, BYTES // row))
            logits, copy = cuda.memory(sets * row), cuda.memory(sets * row)
            bits = cuda.memory(batch * words * 4)
            # As XGrammar chooses them.
            per_row = ceil(2048 // THREADS * 128, batch)
            per_thread = ceil(VOCABULARY, THREADS * per_row)
            per_thread = next((b for b in BITS if per_thread <= b and lanes <= b), BITS[-1])
            function, name = ctypes.c_void_p(), names["variants"][f"{kind} {per_thread}"]
            cuda.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            # In a string most tokens are legal; in a key few are; alternating bits move all vectors.
            for legal, word in (("all", 0xFFFFFFFF), ("none", 0), ("every second", 0x55555555)):
                cuda.call("cuMemsetD32_v2", ctypes.c_uint64(bits), ctypes.c_uint(word), ctypes.c_size_t(batch * words))
                cuda.call("cuMemsetD32_v2", ctypes.c_uint64(logits), ctypes.c_uint(0), ctypes.c_size_t(sets * row // 4))

                def mask(stream):
                    for at in range(sets):
                        values = (
                            ctypes.c_uint64(logits + at * row),
                            ctypes.c_uint64(bits),
                            ctypes.c_uint64(0),
                            ctypes.c_int(VOCABULARY),
                            ctypes.c_int(VOCABULARY),
                            ctypes.c_int(words),
                        )
                        arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
                        grid = (ceil(VOCABULARY, THREADS * per_thread), batch, 1)
                        cuda.call("cuLaunchKernel", function, *grid, THREADS, 1, 1, 0, stream, arguments, None)

                def copying(stream):
                    for at in range(sets):
                        pointers = ctypes.c_uint64(copy + at * row), ctypes.c_uint64(logits + at * row)
                        cuda.call("cuMemcpyDtoDAsync_v2", *pointers, ctypes.c_size_t(row), stream)

                times = [cuda.microseconds(work) / sets for work in (copying, mask)]
                print(f"| {kind} | {batch} | {legal} | {times[0]:.2f} | {times[1]:.2f} | {times[1] / times[0]:.2f} |", flush=True)
            for pointer in (logits, copy, bits):
                cuda.call("cuMemFree_v2", ctypes.c_uint64(pointer))


if len(sys.argv) == 4 and sys.argv[1] == "build":
    build(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
elif len(sys.argv) == 3 and sys.argv[1] == "run":
    run(pathlib.Path(sys.argv[2]))
else:
    sys.exit(__doc__)
