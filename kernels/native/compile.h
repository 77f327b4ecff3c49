// What every file that compiles kernels for an instruction set includes before it switches that set on: standard
// headers must not be compiled for it, or the linker might choose their functions for CPUs that lack it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "calls.h"
#include "half.h"

#define INLINE inline __attribute__((always_inline))
#define INLINE_LAMBDA __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
