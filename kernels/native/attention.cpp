// Attention over the paged pool: cuts a ragged batch into tasks. The arithmetic is in attention_kernels.h.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "abi.h"
#include "calls.h"
#include "pool.h"

namespace turnstile {
namespace {

constexpr int TILE_TOKENS = 8;          // queries of one sequence that share the reading of a block
constexpr int64_t SEGMENT_TOKENS = 256; // a softmax runs over so many positions before it is folded into the whole

struct Rows {
    const int32_t* query_starts;        // [rows + 1]
    const int32_t* context_lens;        // [rows]
    const int32_t* block_tables;        // [rows, stride]
    int64_t stride, rows;
};

// Row + 1 of the first row that names a block outside the pool or more context than its table covers; 0 if all fit.
int64_t misfit(const AttentionCall& call, const Rows& rows, int64_t n) {
    for (int64_t r = 0; r < rows.rows; r++) {
        const int64_t begin = rows.query_starts[r], end = rows.query_starts[r + 1], context = rows.context_lens[r];
        const int64_t blocks = (context + call.block_tokens - 1) / call.block_tokens;
        if (begin < 0 || end < begin || end > n || context < end - begin || blocks > rows.stride) return r + 1;
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t block = rows.block_tables[r * rows.stride + b];
            if (block < 0 || block >= call.blocks) return r + 1;
        }
    }
    return rows.query_starts[0] == 0 && rows.query_starts[rows.rows] == n ? 0 : rows.rows + 1;
}

std::vector<Tile> cut(const Rows& rows) {
    std::vector<Tile> tiles;
    for (int64_t r = 0; r < rows.rows; r++) {
        const int64_t begin = rows.query_starts[r], end = rows.query_starts[r + 1];
        for (int64_t token = begin; token < end; token += TILE_TOKENS)
            tiles.push_back({rows.block_tables + r * rows.stride, token, rows.context_lens[r] - end + token,
                             int(std::min<int64_t>(TILE_TOKENS, end - token))});
    }
    return tiles;
}

struct Attention {
    const AttentionCall& call;
    const KernelTable& table;
    std::vector<Tile> tiles;

    int64_t segment_blocks() const { return std::max<int64_t>(1, SEGMENT_TOKENS / call.block_tokens); }
    int64_t blocks_of(const Tile& tile) const { return (tile.first_position + tile.tokens - 1) / call.block_tokens + 1; }
    int64_t segments_of(const Tile& tile) const { return (blocks_of(tile) + segment_blocks() - 1) / segment_blocks(); }
    int64_t state_floats() const { return call.group() * TILE_TOKENS * call.state_floats(); }
    // Tiles of one kv head follow each other: sequences that share a prefix find its blocks in the cache.
    const Tile& tile_of(int64_t task) const { return tiles[size_t(task % int64_t(tiles.size()))]; }
    int64_t kv_head_of(int64_t task) const { return task / int64_t(tiles.size()); }

    void attend_segment(int64_t task, int64_t segment, float* states) const {
        const Tile& tile = tile_of(task);
        const int64_t first = segment * segment_blocks(), last = std::min(first + segment_blocks(), blocks_of(tile));
        table.attend(call, tile, kv_head_of(task), first, last, states);
    }

    void fold_all(int64_t task, float* totals, const float* parts) const {
        for (int64_t i = 0; i < tile_of(task).tokens * call.group(); i++)
            table.fold(call.d, totals + i * call.state_floats(), parts + i * call.state_floats());
    }

    void finish(int64_t task, const float* totals) const {
        const Tile& tile = tile_of(task);
        const int64_t group = call.group();
        for (int64_t i = 0; i < tile.tokens * group; i++) {
            const float* state = totals + i * call.state_floats();
            float* out = call.out + ((tile.first_token + i / group) * call.heads + kv_head_of(task) * group + i % group) * call.d;
            const float share = 1.0f / state[1];
            for (int64_t c = 0; c < call.d; c++) out[c] = state[16 + c] * share;
        }
    }

    // Every task walks its own segments.
    void run_whole() const {
        parallel(tiles_times_heads(), [&](int64_t task) {
            float* totals = static_cast<float*>(thread_scratch(1, 2 * state_floats() * int64_t(sizeof(float))));
            float* parts = totals + state_floats();
            attend_segment(task, 0, totals);
            for (int64_t segment = 1; segment < segments_of(tile_of(task)); segment++) {
                attend_segment(task, segment, parts);
                fold_all(task, totals, parts);
            }
            finish(task, totals);
        });
    }

    // Few tasks, long contexts: segments are tasks of their own, folded in the same order afterwards.
    void run_split(int64_t segments) const {
        const int64_t tasks = tiles_times_heads();
        float* states = static_cast<float*>(thread_scratch(0, tasks * segments * state_floats() * int64_t(sizeof(float))));
        parallel(tasks * segments, [&](int64_t i) {
            const int64_t task = i / segments, segment = i % segments;
            if (segment < segments_of(tile_of(task))) attend_segment(task, segment, states + i * state_floats());
        });
        parallel(tasks, [&](int64_t task) {
            float* totals = states + task * segments * state_floats();
            for (int64_t segment = 1; segment < segments_of(tile_of(task)); segment++)
                fold_all(task, totals, totals + segment * state_floats());
            finish(task, totals);
        });
    }

    void run() const {
        int64_t segments = 1;
        for (const Tile& tile : tiles) segments = std::max(segments, segments_of(tile));
        if (segments > 1 && tiles_times_heads() < 4 * int64_t(pool_threads())) run_split(segments);
        else run_whole();
    }

    int64_t tiles_times_heads() const { return int64_t(tiles.size()) * call.kv_heads; }
};

}  // namespace
}  // namespace turnstile

using namespace turnstile;

// pool: [2, blocks, kv_heads, block_tokens, d] floats; shape: n, heads, kv_heads, d, block_tokens, blocks, rows,
// columns of block_tables, floats between two tokens of q. Returns 0, or misfit()'s answer with nothing computed.
TURNSTILE_API int64_t turnstile_attention(const float* q, const float* pool, float* out, const int32_t* query_starts,
                                          const int32_t* context_lens, const int32_t* block_tables, float scale,
                                          const int64_t* shape) {
    const int64_t n = shape[0], heads = shape[1], kv_heads = shape[2], d = shape[3], block_tokens = shape[4], blocks = shape[5];
    const Rows rows{query_starts, context_lens, block_tables, shape[7], shape[6]};
    const float* values = pool + blocks * kv_heads * block_tokens * d;
    const AttentionCall call{q, out, pool, values, shape[8], heads, kv_heads, d, block_tokens, blocks, scale};
    if (const int64_t row = misfit(call, rows, n)) return row;
    if (n > 0) Attention{call, kernels(), cut(rows)}.run();
    return 0;
}
