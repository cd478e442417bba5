"""NVRTC through its C interface."""

import ctypes
import sys


def found(tools, name):
    paths = sorted(tools.rglob(name))
    if not paths:
        sys.exit(f"{name} is not in {tools}")
    return paths[0]


class Nvrtc:
    def __init__(self, tools, architecture):
        self.library = ctypes.CDLL(str(found(tools, "libnvrtc.so.*")))
        include = found(tools, "cuda_fp16.h").parent
        # The options of cubecl-cuda.
        options = [f"--gpu-architecture={architecture}", f"--include-path={include}", "-lineinfo"]
        self.options = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))

    def text(self, program, size_of, read):
        size = ctypes.c_size_t()
        getattr(self.library, size_of)(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        getattr(self.library, read)(program, text)
        return text.value

    def ptx(self, source):
        program = ctypes.c_void_p()
        if self.library.nvrtcCreateProgram(ctypes.byref(program), source, None, 0, None, None) != 0:
            raise RuntimeError("NVRTC makes no program")
        try:
            if self.library.nvrtcCompileProgram(program, len(self.options), self.options) != 0:
                raise RuntimeError(self.text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog").decode())
            return self.text(program, "nvrtcGetPTXSize", "nvrtcGetPTX")
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))
