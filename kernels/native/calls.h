// What a kernel is asked to do, and the table of kernels that one instruction set offers.
#pragma once

#include <cstdint>

namespace turnstile {

constexpr int PANEL_ROWS = 16;      // output rows that lie interleaved in one panel

enum class Kind : int32_t { F32 = 0, F16 = 1, BF16 = 2, Q4_0 = 3, Q4_1 = 4, Q8_0 = 5 };

// Stands before the panels of a packed weight.
struct alignas(64) WeightHeader {
    Kind kind;
    int64_t in, out;
    int64_t panel_bytes;
    int64_t panels() const { return (out + PANEL_ROWS - 1) / PANEL_ROWS; }
    const uint8_t* panel(int64_t i) const { return reinterpret_cast<const uint8_t*>(this + 1) + i * panel_bytes; }
};
static_assert(sizeof(WeightHeader) == 64, "panels start at a cache line");

struct LinearCall {
    const WeightHeader* weight;
    const float* x;             // [n, in], rows x_stride apart
    int64_t x_stride, n;
    const float* x_blocks;      // the same rows in blocks, [in][rows of the block] each; only for many rows
    float* y;                   // [n, out]
};

// Rows of block b when n rows are cut into `blocks` nearly equal blocks.
struct RowBlock {
    int64_t first;
    int rows;
};
inline RowBlock row_block(int64_t n, int64_t blocks, int64_t b) {
    const int64_t low = n / blocks, longer = n % blocks;
    return {b * low + (b < longer ? b : longer), int(low + (b < longer))};
}

struct AttentionCall {
    const float* q;             // [n, heads, d], tokens q_stride apart
    float* out;                 // [n, heads, d]
    const float* keys;          // [blocks, kv_heads, block_tokens, d]
    const float* values;
    int64_t q_stride, heads, kv_heads, d, block_tokens, blocks;
    float scale;
    int64_t group() const { return heads / kv_heads; }
    // One query's running softmax: maximum, sum, factor, 13 unused, then d weighted values, then the scores of a block.
    int64_t state_floats() const { return 16 + (d + 15) / 16 * 16 + (block_tokens + 15) / 16 * 16; }
};

// Neighbouring tokens of one sequence, attended together so that a block is read once for all of them.
struct Tile {
    const int32_t* block_table;
    int64_t first_token;        // in the batch
    int64_t first_position;     // in the sequence
    int tokens;
};

struct KernelTable {
    const char* name;
    int direct_rows;            // up to so many rows are multiplied straight from the quantised weight
    int block_rows;             // rows of a full block of the many-row path
    int panel_step;             // panels worked on together; tasks start at multiples of it
    int64_t (*scratch_bytes)(int64_t in);
    void (*linear_direct)(const LinearCall&, int64_t first_panel, int64_t last_panel);
    void (*linear_blocked)(const LinearCall&, int64_t first_panel, int64_t last_panel, float* scratch);
    void (*attend)(const AttentionCall&, const Tile&, int64_t kv_head, int64_t first_block, int64_t last_block, float* states);
    void (*fold)(int64_t d, float* total, const float* part);
    void (*rms_norm)(const float* x, const float* residual, const float* weight, float eps, int64_t d, float* sum, float* out);
    void (*swiglu)(const float* gate, const float* up, int64_t ff, float* out);
    void (*rotate)(float* head, const float* cos_sin, int64_t d);
    void (*mask)(float* logits, const uint32_t* bits, int64_t vocabulary);
    void (*weights)(const float* logits, float peak, float factor, int64_t n, float* out);
};

const KernelTable& kernels();

}  // namespace turnstile
