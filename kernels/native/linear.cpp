// Packing of weights into panels, the linear layer and the embedding. docs/kernels.md draws the layouts.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "abi.h"
#include "calls.h"
#include "half.h"
#include "pool.h"

namespace turnstile {
namespace {

constexpr int64_t BLOCK = 32;       // values of a quantised block

bool is_quantised(Kind kind) { return kind == Kind::Q4_0 || kind == Kind::Q4_1 || kind == Kind::Q8_0; }

// Bytes of one group of a panel (16 rows of a block, or of a single input for the float kinds).
int64_t group_bytes(Kind kind) {
    switch (kind) {
        case Kind::F32: return 64;
        case Kind::F16:
        case Kind::BF16: return 32;
        case Kind::Q4_0: return 288;
        case Kind::Q4_1: return 320;
        case Kind::Q8_0: return 544;
    }
    return 0;
}

int64_t source_bytes(Kind kind) { return group_bytes(kind) / PANEL_ROWS; }

WeightHeader header(Kind kind, int64_t out, int64_t in) {
    const int64_t groups = is_quantised(kind) ? in / BLOCK : in;
    return {kind, in, out, groups * group_bytes(kind)};
}

// One row's block, 16 bytes of nibbles (low: values 0..15, high: 16..31), into lane `lane` of words [4][16].
void spread_nibbles(const uint8_t* packed, int lane, uint8_t* words) {
    for (int j = 0; j < 4; j++) {
        uint32_t word = 0;
        for (int t = 0; t < 8; t++) {
            const int k = 8 * j + t;
            const uint32_t nibble = k < 16 ? packed[k] & 15 : packed[k - 16] >> 4;
            word |= nibble << (4 * t);
        }
        std::memcpy(words + (j * PANEL_ROWS + lane) * 4, &word, 4);
    }
}

// One row's group from the file's layout into lane `lane` of the panel's.
void spread_group(Kind kind, const uint8_t* source, int lane, uint8_t* group) {
    switch (kind) {
        case Kind::F32: std::memcpy(group + lane * 4, source, 4); return;
        case Kind::F16:
        case Kind::BF16: std::memcpy(group + lane * 2, source, 2); return;
        case Kind::Q4_0:
            std::memcpy(group + lane * 2, source, 2);
            spread_nibbles(source + 2, lane, group + 32);
            return;
        case Kind::Q4_1:
            std::memcpy(group + lane * 2, source, 2);
            std::memcpy(group + 32 + lane * 2, source + 2, 2);
            spread_nibbles(source + 4, lane, group + 64);
            return;
        case Kind::Q8_0:
            std::memcpy(group + lane * 2, source, 2);
            for (int k = 0; k < BLOCK; k++) group[32 + k * PANEL_ROWS + lane] = source[2 + k];
            return;
    }
}

void pack_panel(const WeightHeader& weight, const uint8_t* rows, int64_t panel) {
    const int64_t groups = weight.panel_bytes / group_bytes(weight.kind), bytes = source_bytes(weight.kind);
    uint8_t* target = const_cast<uint8_t*>(weight.panel(panel));
    std::memset(target, 0, size_t(weight.panel_bytes));
    const int64_t first = panel * PANEL_ROWS, last = std::min<int64_t>(first + PANEL_ROWS, weight.out);
    for (int64_t row = first; row < last; row++)
        for (int64_t g = 0; g < groups; g++)
            spread_group(weight.kind, rows + (row * groups + g) * bytes, int(row - first), target + g * group_bytes(weight.kind));
}

// Row `lane` of a group as floats.
void read_group(Kind kind, const uint8_t* group, int lane, float* out) {
    const uint16_t* halves = reinterpret_cast<const uint16_t*>(group);
    const auto nibble = [&](const uint8_t* words, int k) {
        return float(words[(k / 8 * PANEL_ROWS + lane) * 4 + k % 8 / 2] >> (k % 2 * 4) & 15);
    };
    const float d = is_quantised(kind) ? half_to_float(halves[lane]) : 0.0f;
    switch (kind) {
        case Kind::F32: std::memcpy(out, group + lane * 4, 4); return;
        case Kind::F16: *out = half_to_float(halves[lane]); return;
        case Kind::BF16: *out = brain_to_float(halves[lane]); return;
        case Kind::Q4_0:
            for (int k = 0; k < BLOCK; k++) out[k] = d * (nibble(group + 32, k) - 8.0f);
            return;
        case Kind::Q4_1: {
            const float m = half_to_float(halves[PANEL_ROWS + lane]);
            for (int k = 0; k < BLOCK; k++) out[k] = d * nibble(group + 64, k) + m;
            return;
        }
        case Kind::Q8_0:
            for (int k = 0; k < BLOCK; k++) out[k] = d * float(int8_t(group[32 + k * PANEL_ROWS + lane]));
            return;
    }
}

void read_row(const WeightHeader& weight, int64_t row, float* out) {
    const int64_t bytes = group_bytes(weight.kind), inputs = is_quantised(weight.kind) ? BLOCK : 1;
    const uint8_t* group = weight.panel(row / PANEL_ROWS);
    for (int64_t done = 0; done < weight.in; done += inputs, group += bytes, out += inputs)
        read_group(weight.kind, group, int(row % PANEL_ROWS), out);
}

// Runs body(first_panel, last_panel) over all panels, a few tasks for each thread.
template <class Body>
void over_panels(const WeightHeader& weight, int64_t step, Body body) {
    const int64_t panels = weight.panels(), wanted = int64_t(pool_threads()) * 4;
    const int64_t share = (panels + wanted - 1) / wanted, length = (share + step - 1) / step * step;
    parallel((panels + length - 1) / length, [&](int64_t task) {
        body(task * length, std::min(panels, (task + 1) * length));
    });
}

// Cuts x into blocks of rows, each [in][rows], so that the kernel reads straight on.
void block_rows(const LinearCall& call, int64_t blocks, float* out) {
    const int64_t in = call.weight->in;
    parallel(blocks, [&](int64_t b) {
        const RowBlock rows = row_block(call.n, blocks, b);
        float* target = out + rows.first * in;
        for (int r = 0; r < rows.rows; r++) {
            const float* x = call.x + (rows.first + r) * call.x_stride;
            for (int64_t k = 0; k < in; k++) target[k * rows.rows + r] = x[k];
        }
    });
}

void linear(LinearCall call) {
    const KernelTable& table = kernels();
    const WeightHeader& weight = *call.weight;
    if (call.n <= table.direct_rows) {
        over_panels(weight, table.panel_step, [&](int64_t first, int64_t last) { table.linear_direct(call, first, last); });
        return;
    }
    float* blocks = static_cast<float*>(thread_scratch(0, call.n * weight.in * int64_t(sizeof(float))));
    block_rows(call, (call.n + table.block_rows - 1) / table.block_rows, blocks);
    call.x_blocks = blocks;
    over_panels(weight, table.panel_step, [&](int64_t first, int64_t last) {
        table.linear_blocked(call, first, last, static_cast<float*>(thread_scratch(1, table.scratch_bytes(weight.in))));
    });
}

}  // namespace
}  // namespace turnstile

using namespace turnstile;

TURNSTILE_API int64_t turnstile_packed_bytes(int32_t kind, int64_t out, int64_t in) {
    const WeightHeader weight = header(Kind(kind), out, in);
    return int64_t(sizeof weight) + weight.panels() * weight.panel_bytes;
}

// rows: the matrix [out, in] as in the file. packed: turnstile_packed_bytes bytes, aligned to 64.
TURNSTILE_API void turnstile_pack(int32_t kind, int64_t out, int64_t in, const uint8_t* rows, void* packed) {
    WeightHeader& weight = *static_cast<WeightHeader*>(packed);
    weight = header(Kind(kind), out, in);
    parallel(weight.panels(), [&](int64_t panel) { pack_panel(weight, rows, panel); });
}

// y [n, out] = x [n, in] times the transposed weight.
TURNSTILE_API void turnstile_linear(const float* x, int64_t x_stride, int64_t n, const void* packed, float* y) {
    if (n > 0) linear({static_cast<const WeightHeader*>(packed), x, x_stride, n, nullptr, y});
}

// y [n, in] = the weight's rows `tokens`; the place of the first token that is no row plus 1, or 0.
TURNSTILE_API int64_t turnstile_embed(const int64_t* tokens, int64_t n, const void* packed, float* y) {
    const WeightHeader& weight = *static_cast<const WeightHeader*>(packed);
    for (int64_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= weight.out) return i + 1;
    parallel((n + 15) / 16, [&](int64_t task) {
        for (int64_t i = task * 16; i < std::min(n, task * 16 + 16); i++) read_row(weight, tokens[i], y + i * weight.in);
    });
    return 0;
}
