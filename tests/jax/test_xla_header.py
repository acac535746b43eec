"""The declarations of `logunif_kl/jax/c/xla.h` are those of the header that jaxlib brings."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("jax")

import jax

HEADER = Path(__file__).parents[2] / "logunif_kl" / "jax" / "c" / "xla.h"
THEIRS = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"

# Our type, theirs, and the members. A member with another name in theirs is `ours=theirs`.
TYPES = """
lk_xla_extension XLA_FFI_Extension_Base: struct_size type next
lk_xla_version XLA_FFI_Api_Version: extensions=extension_start major=major_version
    minor=minor_version
lk_xla_metadata XLA_FFI_Metadata: struct_size version=api_version traits
lk_xla_metadata_extension XLA_FFI_Metadata_Extension: base=extension_base metadata
lk_xla_buffer XLA_FFI_Buffer: dtype data rank dims
lk_xla_span XLA_FFI_ByteSpan: text=ptr length=len
lk_xla_scalar XLA_FFI_Scalar: dtype value
lk_xla_buffers XLA_FFI_Args: size types values=args
lk_xla_buffers XLA_FFI_Rets: size types values=rets
lk_xla_attributes XLA_FFI_Attrs: size types names values=attrs
lk_xla_error_create XLA_FFI_Error_Create_Args: message code=errc
lk_xla_error_destroy XLA_FFI_Error_Destroy_Args: error
lk_xla_schedule XLA_FFI_ThreadPool_Schedule_Args: context=ctx task data
lk_xla_num_threads XLA_FFI_ThreadPool_NumThreads_Args: context=ctx num_threads
lk_xla_api XLA_FFI_Api: version=api_version internal=internal_api
    error_create=XLA_FFI_Error_Create error_message=XLA_FFI_Error_GetMessage
    error_destroy=XLA_FFI_Error_Destroy schedule=XLA_FFI_ThreadPool_Schedule
    num_threads=XLA_FFI_ThreadPool_NumThreads
lk_xla_frame XLA_FFI_CallFrame: extensions=extension_start api context=ctx stage arguments=args
    results=rets attributes=attrs
"""
VALUES = """
LK_XLA_MAJOR == XLA_FFI_API_MAJOR
LK_XLA_METADATA == XLA_FFI_Extension_Metadata
LK_XLA_BUFFER == XLA_FFI_ArgType_BUFFER
LK_XLA_BUFFER == XLA_FFI_RetType_BUFFER
LK_XLA_SCALAR == XLA_FFI_AttrType_SCALAR
LK_XLA_F32 == XLA_FFI_DataType_F32
LK_XLA_INVALID_ARGUMENT == XLA_FFI_Error_Code_INVALID_ARGUMENT
LK_XLA_EXECUTE == XLA_FFI_ExecutionStage_EXECUTE
"""
# Those that XLA has made as large as ours; later members of the others are not declared.
WHOLE = {"lk_xla_extension", "lk_xla_version", "lk_xla_metadata_extension", "lk_xla_buffer"}
WHOLE |= {"lk_xla_span", "lk_xla_scalar", "lk_xla_buffers", "lk_xla_attributes"}
WHOLE |= {"lk_xla_schedule", "lk_xla_num_threads", "lk_xla_error_create", "lk_xla_error_destroy"}


def program(types, values):
    """A program that does not compile if a declaration differs."""
    asserts = ["LK_XLA_MINOR <= XLA_FFI_API_MINOR", *values.strip().splitlines()]
    for row in types.strip().replace("\n   ", "").splitlines():
        kinds, _, members = row.partition(":")
        ours, theirs = kinds.split()
        for member in members.split():
            mine, _, its = member.partition("=")
            its = its or mine
            asserts.append(f"offsetof({ours}, {mine}) == offsetof({theirs}, {its})")
            asserts.append(f"sizeof((({ours}*)0)->{mine}) == sizeof((({theirs}*)0)->{its})")
        if ours in WHOLE:
            asserts.append(f"sizeof({ours}) == sizeof({theirs})")
    lines = [f'_Static_assert({each}, "{each}");' for each in asserts]
    # Without its declarations for compilers that know no C11.
    return "\n".join([f'#include "{THEIRS}"', f'#include "{HEADER}"', *lines, "int main(void);"])


def compiled(text, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not HEADER.exists():
        pytest.skip("there is no C compiler, or no C source")
    source = tmp_path / "both.c"
    source.write_text(text)
    command = [compiler, "-std=gnu11", "-include", "stddef.h", "-include", "stdbool.h"]
    return subprocess.run(
        [*command, "-fsyntax-only", str(source)], capture_output=True, text=True, check=False
    )


def test_declarations_are_those_of_jaxlib(tmp_path):
    done = compiled(program(TYPES, VALUES), tmp_path)
    assert done.returncode == 0, done.stderr
