// Products of activations with panels. Included once per instruction set, after lanes and kinds.
//
// An output is one chain: y = 0, then y = fma(w[k], x[k], y) for k = 0, 1, 2 ... Both paths below keep exactly
// this order, so an output's bits depend on its row and its weight only, never on how many rows come along.

INLINE void store_panel(float* y, int64_t valid, Lanes value) {
    if (valid >= PANEL_ROWS) return store(y, value);
    float all_rows[PANEL_ROWS];
    store(all_rows, value);
    std::memcpy(y, all_rows, size_t(valid) * sizeof(float));
}

INLINE Lanes load_panel(const float* y, int64_t valid) {
    if (valid >= PANEL_ROWS) return load(y);
    float all_rows[PANEL_ROWS] = {};
    std::memcpy(all_rows, y, size_t(valid) * sizeof(float));
    return load(all_rows);
}

// R rows times P panels, each weight decoded in registers and used R times.
template <class K, int R, int P>
void direct(const LinearCall& call, int64_t panel) {
    const WeightHeader& weight = *call.weight;
    const uint8_t* groups = weight.panel(panel);
    const float* x = call.x;
    Lanes y[R][P];
    for (int r = 0; r < R; r++)
        for (int p = 0; p < P; p++) y[r][p] = zero();
    for (int64_t done = 0; done < weight.in; done += K::INPUTS, groups += K::BYTES) {
        typename K::Scale scale[P];
        for (int p = 0; p < P; p++) {
            const uint8_t* group = groups + p * weight.panel_bytes;
            scale[p] = K::scale(group);
            for (int line = 0; line < K::BYTES; line += 64) __builtin_prefetch(group + P * weight.panel_bytes + line, 0, 2);
        }
        UNROLL for (int j = 0; j < K::WORDS; j++) {
            typename K::Word word[P];
            for (int p = 0; p < P; p++) word[p] = K::word(groups + p * weight.panel_bytes, j);
            UNROLL for (int t = 0; t < K::VALUES; t++, x++)
                for (int p = 0; p < P; p++) {
                    const Lanes w = K::value(word[p], t, scale[p]);
                    for (int r = 0; r < R; r++) y[r][p] = fma(w, all(x[r * call.x_stride]), y[r][p]);
                }
        }
    }
    for (int r = 0; r < R; r++)
        for (int p = 0; p < P; p++) {
            const int64_t row = (panel + p) * PANEL_ROWS;
            store_panel(call.y + r * weight.out + row, weight.out - row, y[r][p]);
        }
}

template <class K, int R>
void direct_over(const LinearCall& call, int64_t first, int64_t last) {
    constexpr int P = panels_together(R);
    int64_t panel = first;
    for (; panel + P <= last; panel += P) direct<K, R, P>(call, panel);
    for (; panel < last; panel++) direct<K, R, 1>(call, panel);
}

template <class K, int R>
void direct_of_rows(const LinearCall& call, int64_t first, int64_t last) {
    if (call.n == R) return direct_over<K, R>(call, first, last);
    if constexpr (R > 1) direct_of_rows<K, R - 1>(call, first, last);
}

// A few rows more than registers hold: each panel is read again, from the first-level cache, for the next of them.
template <class K>
void direct_panels(const LinearCall& call, int64_t first, int64_t last) {
    if (call.n <= DIRECT_ROWS) return direct_of_rows<K, DIRECT_ROWS>(call, first, last);
    const int64_t blocks = (call.n + DIRECT_ROWS - 1) / DIRECT_ROWS;
    for (int64_t panel = first; panel < last; panel++)
        for (int64_t b = 0; b < blocks; b++) {
            const RowBlock rows = row_block(call.n, blocks, b);
            LinearCall some = call;
            some.x += rows.first * call.x_stride, some.y += rows.first * call.weight->out, some.n = rows.rows;
            direct_of_rows<K, DIRECT_ROWS>(some, panel, panel + 1);
        }
}

// Inputs of one stretch of the many-row path: its unpacked panels stay in the second-level cache.
constexpr int64_t STRETCH = 2048;

// Decode inputs [from, to) of one panel into out, [inputs][16].
template <class K>
void unpack(const uint8_t* panel, int64_t from, int64_t to, float* out) {
    const uint8_t* group = panel + from / K::INPUTS * K::BYTES;
    for (int64_t done = from; done < to; done += K::INPUTS, group += K::BYTES) {
        const typename K::Scale scale = K::scale(group);
        UNROLL for (int j = 0; j < K::WORDS; j++) {
            const typename K::Word word = K::word(group, j);
            UNROLL for (int t = 0; t < K::VALUES; t++, out += PANEL_ROWS) store(out, K::value(word, t, scale));
        }
    }
}

// R rows times P unpacked panels over one stretch; x is [inputs][R]. The chains go on from y unless it is the first.
template <int R, int P>
void block(const float* w, const float* x, int64_t inputs, bool first, float* y, int64_t y_stride, int64_t valid) {
    Lanes sums[R][P];
    for (int r = 0; r < R; r++)
        for (int p = 0; p < P; p++)
            sums[r][p] = first ? zero() : load_panel(y + r * y_stride + p * PANEL_ROWS, valid - p * PANEL_ROWS);
    const float* second = w + inputs * PANEL_ROWS;
    for (int64_t k = 0; k < inputs; k++, w += PANEL_ROWS, second += PANEL_ROWS, x += R) {
        Lanes weights[P];
        weights[0] = load(w);
        if constexpr (P == 2) weights[1] = load(second);
        UNROLL for (int r = 0; r < R; r++) {
            const Lanes input = all(x[r]);
            for (int p = 0; p < P; p++) sums[r][p] = fma(weights[p], input, sums[r][p]);
        }
    }
    for (int r = 0; r < R; r++)
        for (int p = 0; p < P; p++) store_panel(y + r * y_stride + p * PANEL_ROWS, valid - p * PANEL_ROWS, sums[r][p]);
}

template <int R, int P>
void block_of_rows(int rows, const float* w, const float* x, int64_t inputs, bool first, float* y, int64_t y_stride,
                   int64_t valid) {
    if (rows == R) return block<R, P>(w, x, inputs, first, y, y_stride, valid);
    if constexpr (R > 1) block_of_rows<R - 1, P>(rows, w, x, inputs, first, y, y_stride, valid);
}

// All row blocks times P panels from `panel` on.
template <class K, int P>
void blocked(const LinearCall& call, int64_t panel, float* scratch) {
    const WeightHeader& weight = *call.weight;
    const int64_t blocks = (call.n + BLOCK_ROWS - 1) / BLOCK_ROWS, row = panel * PANEL_ROWS;
    for (int64_t from = 0; from < weight.in; from += STRETCH) {
        const int64_t inputs = weight.in - from < STRETCH ? weight.in - from : STRETCH;
        for (int p = 0; p < P; p++)
            unpack<K>(weight.panel(panel + p), from, from + inputs, scratch + p * inputs * PANEL_ROWS);
        for (int64_t b = 0; b < blocks; b++) {
            const RowBlock rows = row_block(call.n, blocks, b);
            const float* x = call.x_blocks + rows.first * weight.in + from * rows.rows;
            float* y = call.y + rows.first * weight.out + row;
            block_of_rows<BLOCK_ROWS, P>(rows.rows, scratch, x, inputs, from == 0, y, weight.out, weight.out - row);
        }
    }
}

template <class K>
void blocked_panels(const LinearCall& call, int64_t first, int64_t last, float* scratch) {
    int64_t panel = first;
    for (; panel + BLOCK_PANELS <= last; panel += BLOCK_PANELS) blocked<K, BLOCK_PANELS>(call, panel, scratch);
    for (; panel < last; panel++) blocked<K, 1>(call, panel, scratch);
}

int64_t scratch_bytes(int64_t in) {
    return (in < STRETCH ? in : STRETCH) * BLOCK_PANELS * PANEL_ROWS * int64_t(sizeof(float));
}

void linear_direct(const LinearCall& call, int64_t first, int64_t last) {
    switch (call.weight->kind) {
        case Kind::F32: return direct_panels<KindF32>(call, first, last);
        case Kind::F16: return direct_panels<KindF16>(call, first, last);
        case Kind::BF16: return direct_panels<KindBF16>(call, first, last);
        case Kind::Q4_0: return direct_panels<KindQ4_0>(call, first, last);
        case Kind::Q4_1: return direct_panels<KindQ4_1>(call, first, last);
        case Kind::Q8_0: return direct_panels<KindQ8_0>(call, first, last);
    }
}

void linear_blocked(const LinearCall& call, int64_t first, int64_t last, float* scratch) {
    switch (call.weight->kind) {
        case Kind::F32: return blocked_panels<KindF32>(call, first, last, scratch);
        case Kind::F16: return blocked_panels<KindF16>(call, first, last, scratch);
        case Kind::BF16: return blocked_panels<KindBF16>(call, first, last, scratch);
        case Kind::Q4_0: return blocked_panels<KindQ4_0>(call, first, last, scratch);
        case Kind::Q4_1: return blocked_panels<KindQ4_1>(call, first, last, scratch);
        case Kind::Q8_0: return blocked_panels<KindQ8_0>(call, first, last, scratch);
    }
}
