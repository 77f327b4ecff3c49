// All kernels for x86-64 CPUs with AVX-512 F, BW, DQ and VL.
#include "compile.h"

#if defined(__x86_64__)
// The compiler's own headers start some intrinsics from undefined registers on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")
#endif

namespace turnstile::avx512 {
#include "lanes_avx512.h"

#include "kinds.h"

#include "linear_kernels.h"

#include "row_kernels.h"

#include "attention_kernels.h"

#include "kernel_table.h"
}  // namespace turnstile::avx512

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace turnstile {
const KernelTable* avx512_kernels() { return &avx512::TABLE; }
}  // namespace turnstile

#else
namespace turnstile {
const KernelTable* avx512_kernels() { return nullptr; }
}  // namespace turnstile
#endif
