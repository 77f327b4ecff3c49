// Operations on single rows, and writing into the paged pool.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "abi.h"
#include "calls.h"
#include "pool.h"

namespace turnstile {
namespace {

// Rows of `floats` each, in tasks large enough to be worth a thread.
template <class Body>
void over_rows(int64_t n, int64_t floats, Body body) {
    constexpr int64_t TASK_FLOATS = 8192;
    const int64_t rows = std::max<int64_t>(1, TASK_FLOATS / std::max<int64_t>(1, floats));
    parallel((n + rows - 1) / rows, [&](int64_t task) {
        for (int64_t i = task * rows; i < std::min(n, (task + 1) * rows); i++) body(i);
    });
}

}  // namespace
}  // namespace turnstile

using namespace turnstile;

// out = rms_norm(x + residual), total = x + residual; residual and total may both be null. All [n, d] without gaps.
TURNSTILE_API void turnstile_rms_norm(const float* x, const float* residual, const float* weight, float eps, int64_t n, int64_t d,
                                      float* total, float* out) {
    const KernelTable& table = kernels();
    over_rows(n, d, [&](int64_t i) {
        const int64_t at = i * d;
        table.rms_norm(x + at, residual ? residual + at : nullptr, weight, eps, d, total ? total + at : nullptr, out + at);
    });
}

// gate_up [n, 2 ff] -> out [n, ff]
TURNSTILE_API void turnstile_swiglu(const float* gate_up, int64_t n, int64_t ff, float* out) {
    const KernelTable& table = kernels();
    over_rows(n, ff, [&](int64_t i) { table.swiglu(gate_up + i * 2 * ff, gate_up + i * 2 * ff + ff, ff, out + i * ff); });
}

// shape: n, heads of q, heads of k, d, floats between two tokens of q and of k, rows of cos_sin.
// Returns 0, or the place + 1 of the first position that cos_sin does not have, with nothing turned.
TURNSTILE_API int64_t turnstile_rotary(float* q, float* k, const int32_t* positions, const float* cos_sin, const int64_t* shape) {
    const KernelTable& table = kernels();
    const int64_t n = shape[0], q_heads = shape[1], k_heads = shape[2], d = shape[3];
    for (int64_t i = 0; i < n; i++)
        if (positions[i] < 0 || positions[i] >= shape[6]) return i + 1;
    over_rows(n, (q_heads + k_heads) * d, [&](int64_t i) {
        const float* angles = cos_sin + positions[i] * d;
        for (int64_t h = 0; h < q_heads; h++) table.rotate(q + i * shape[4] + h * d, angles, d);
        for (int64_t h = 0; h < k_heads; h++) table.rotate(k + i * shape[5] + h * d, angles, d);
    });
    return 0;
}

// shape: n, kv_heads, d, block_tokens, blocks, floats between two tokens of k and of v.
// Returns 0, or the place + 1 of the first slot outside the pool, with nothing written.
TURNSTILE_API int64_t turnstile_write_kv(const float* k, const float* v, float* pool, const int64_t* slots,
                                         const int64_t* shape) {
    const int64_t n = shape[0], kv_heads = shape[1], d = shape[2], block_tokens = shape[3], blocks = shape[4];
    for (int64_t i = 0; i < n; i++)
        if (slots[i] < 0 || slots[i] >= blocks * block_tokens) return i + 1;
    const int64_t half = blocks * kv_heads * block_tokens * d;
    over_rows(n, 2 * kv_heads * d, [&](int64_t i) {
        const int64_t block = slots[i] / block_tokens, offset = slots[i] % block_tokens;
        for (int64_t h = 0; h < kv_heads; h++) {
            float* target = pool + ((block * kv_heads + h) * block_tokens + offset) * d;
            std::memcpy(target, k + i * shape[5] + h * d, size_t(d) * sizeof(float));
            std::memcpy(target + half, v + i * shape[6] + h * d, size_t(d) * sizeof(float));
        }
    });
    return 0;
}

// logits [m, vocabulary], rows `stride` floats apart; bits [m, ceil(vocabulary / 32)].
TURNSTILE_API void turnstile_mask_logits(float* logits, int64_t stride, const uint32_t* bits, int64_t m, int64_t vocabulary) {
    const KernelTable& table = kernels();
    const int64_t words = (vocabulary + 31) / 32;
    over_rows(m, vocabulary, [&](int64_t i) { table.mask(logits + i * stride, bits + i * words, vocabulary); });
}
