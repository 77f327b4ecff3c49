// All kernels for x86-64 CPUs with AVX2, FMA and F16C.
#include "compile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

namespace turnstile::avx2 {
#include "lanes_avx2.h"

#include "kinds.h"

#include "linear_kernels.h"

#include "row_kernels.h"

#include "attention_kernels.h"

#include "kernel_table.h"
}  // namespace turnstile::avx2

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace turnstile {
const KernelTable* avx2_kernels() { return &avx2::TABLE; }
}  // namespace turnstile

#else
namespace turnstile {
const KernelTable* avx2_kernels() { return nullptr; }
}  // namespace turnstile
#endif
