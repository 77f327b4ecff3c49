// Attention of a tile of queries to a run of blocks. Included once per instruction set, after the row kernels.
//
// A query's softmax runs block by block, in the order of the sequence, within segments of fixed length; segments are
// folded together in order. What a query computes thus depends on its position and its sequence's keys and values only,
// neither on its neighbours in the tile nor on the threads.

// AttentionCall::state_floats of one query.
struct State {
    float* memory;
    INLINE float& maximum() const { return memory[0]; }
    INLINE float& sum() const { return memory[1]; }
    INLINE float& factor() const { return memory[2]; }          // what the last block's softmax makes of the values so far
    INLINE float* values() const { return memory + 16; }
    INLINE float* scores(int64_t d) const { return memory + 16 + (d + 15) / 16 * 16; }
};

// scores[t] = query . keys[t] for t < count rounded up to 4; keys past the block's end repeat its last.
INLINE void score_block(const float* query, const float* keys, const AttentionCall& call, int64_t count, float* scores) {
    const int64_t d = call.d, whole = d / 16 * 16, last = call.block_tokens - 1;
    for (int64_t t = 0; t < count; t += 4) {
        const float* key[4];
        Lanes products[4];
        for (int i = 0; i < 4; i++) {
            key[i] = keys + (t + i < last ? t + i : last) * d;
            products[i] = zero();
        }
        for (int64_t c = 0; c < whole; c += 16) {
            const Lanes part = load(query + c);
            for (int i = 0; i < 4; i++) products[i] = fma(part, load(key[i] + c), products[i]);
        }
        if (whole < d) {
            const Lanes part = load_first(query + whole, d - whole);
            for (int i = 0; i < 4; i++) products[i] = fma(part, load_first(key[i] + whole, d - whole), products[i]);
        }
        sum_four(products, scores + t);
    }
}

// The state's scores -> exp(score * scale - new maximum), for t < count.
// A score that is not a number leaves the maximum alone and makes the sum, and so the result, not a number.
INLINE void soften(State state, const AttentionCall& call, int64_t count) {
    float* scores = state.scores(call.d);
    const int64_t end = (count + 15) / 16 * 16;
    for (int64_t t = count; t < end; t++) scores[t] = -INFINITY;        // weighs e^-87, which is nothing beside the largest
    Lanes largest = all(state.maximum());
    for (int64_t t = 0; t < end; t += 16) {
        const Lanes scaled = mul(load(scores + t), all(call.scale));
        store(scores + t, scaled);
        largest = max(scaled, largest);
    }
    const float maximum = greatest(largest);
    Lanes sums = zero();
    for (int64_t t = 0; t < end; t += 16) {
        const Lanes weights = exponential(sub(load(scores + t), all(maximum)));
        store(scores + t, weights);
        sums = add(sums, weights);
    }
    float factor[16];
    store(factor, exponential(all(state.maximum() - maximum)));
    state.factor() = factor[0];
    state.maximum() = maximum;
    state.sum() = state.sum() * factor[0] + sum(sums);
}

// F runs of 16 columns of the state's values: values = values * factor + weights . block
template <int F>
INLINE void weigh_columns(float* values, const float* block, int64_t d, const float* weights, int64_t count, float factor) {
    Lanes sums[F];
    for (int f = 0; f < F; f++) sums[f] = mul(load(values + 16 * f), all(factor));
    for (int64_t t = 0; t < count; t++, block += d) {
        const Lanes weight = all(weights[t]);
        for (int f = 0; f < F; f++) sums[f] = fma(weight, load(block + 16 * f), sums[f]);
    }
    for (int f = 0; f < F; f++) store(values + 16 * f, sums[f]);
}

INLINE void weigh_block(State state, const float* block, int64_t d, int64_t count) {
    float *values = state.values(), *weights = state.scores(d);
    const float factor = state.factor();
    int64_t c = 0;
    for (; c + 64 <= d; c += 64) weigh_columns<4>(values + c, block + c, d, weights, count, factor);
    for (; c + 16 <= d; c += 16) weigh_columns<1>(values + c, block + c, d, weights, count, factor);
    if (c == d) return;
    Lanes rest = mul(load(values + c), all(factor));
    for (int64_t t = 0; t < count; t++) rest = fma(all(weights[t]), load_first(block + t * d + c, d - c), rest);
    store(values + c, rest);
}

// Calls body(state, query, count) for every query of the tile that sees positions of block b: those up to its own.
template <class Body>
INLINE void each_query(const AttentionCall& call, const Tile& tile, int64_t kv_head, int64_t b, float* states, Body body) {
    const int64_t group = call.group(), floats = call.state_floats(), ahead = b * call.block_tokens - tile.first_position;
    for (int64_t token = ahead > 0 ? ahead : 0; token < tile.tokens; token++) {
        const int64_t seen = token + 1 - ahead, count = seen < call.block_tokens ? seen : call.block_tokens;
        const float* query = call.q + (tile.first_token + token) * call.q_stride + kv_head * group * call.d;
        for (int64_t g = 0; g < group; g++, query += call.d) body(State{states + (token * group + g) * floats}, query, count);
    }
}

// All queries of the tile that read kv_head, over blocks [first_block, last_block) of their sequence, from a fresh state.
// states: [tokens][group][state_floats]. Block by block, each of the three steps is done for all queries before the next:
// a query's steps wait for each other, different queries' do not.
void attend(const AttentionCall& call, const Tile& tile, int64_t kv_head, int64_t first_block, int64_t last_block,
            float* states) {
    const int64_t floats = call.state_floats(), queries = tile.tokens * call.group();
    for (int64_t i = 0; i < queries; i++) {
        std::memset(states + i * floats, 0, size_t(floats) * sizeof(float));
        State{states + i * floats}.maximum() = -INFINITY;
    }
    for (int64_t b = first_block; b < last_block; b++) {
        const int64_t offset = (tile.block_table[b] * call.kv_heads + kv_head) * call.block_tokens * call.d;
        const float *keys = call.keys + offset, *values = call.values + offset;
        each_query(call, tile, kv_head, b, states, [&](State state, const float* query, int64_t count) INLINE_LAMBDA {
            score_block(query, keys, call, count, state.scores(call.d));
        });
        each_query(call, tile, kv_head, b, states, [&](State state, const float*, int64_t count) INLINE_LAMBDA {
            soften(state, call, count);
        });
        each_query(call, tile, kv_head, b, states, [&](State state, const float*, int64_t count) INLINE_LAMBDA {
            weigh_block(state, values, call.d, count);
        });
    }
}

// total = total and part together; a part that saw no key changes nothing.
void fold(int64_t d, float* total, const float* part) {
    const float maximum = part[0];
    if (part[1] == 0.0f) return;
    const float joint = maximum <= total[0] ? total[0] : maximum;
    float factors[2][16];
    store(factors[0], exponential(all(total[0] - joint)));
    store(factors[1], exponential(all(maximum - joint)));
    const Lanes mine = all(factors[0][0]), its = all(factors[1][0]);
    total[0] = joint;
    total[1] = total[1] * factors[0][0] + part[1] * factors[1][0];
    for (int64_t c = 16; c < 16 + d; c += 16) store(total + c, fma(load(part + c), its, mul(load(total + c), mine)));
}
