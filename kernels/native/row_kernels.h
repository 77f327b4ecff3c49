// Work on single rows: normalisation, activation, rotation, masks. Included once per instruction set, after its lanes.

// e to the x to about one unit in the last place, between about 1e-38 and 1e38; 1 exactly at 0. The range is reduced
// by whole powers of two, the rest is the polynomial of the Cephes library's expf.
INLINE Lanes exponential(Lanes x) {
    x = max(all(-87.0f), min(all(88.0f), x));
    const Lanes n = nearest(mul(x, all(1.44269504088896341f)));
    const Lanes r = fma(n, all(2.12194440e-4f), fma(n, all(-0.693359375f), x));
    Lanes p = all(1.9875691500e-4f);
    p = fma(p, r, all(1.3981999507e-3f));
    p = fma(p, r, all(8.3334519073e-3f));
    p = fma(p, r, all(4.1665795894e-2f));
    p = fma(p, r, all(1.6666665459e-1f));
    p = fma(p, r, all(5.0000001201e-1f));
    p = fma(p, mul(r, r), add(r, all(1.0f)));
    return scale_by_power(p, n);
}

// The first `count` (< 16) floats, zeros after them.
INLINE Lanes load_first(const float* p, int64_t count) {
    float lanes[16] = {};
    std::memcpy(lanes, p, size_t(count) * sizeof(float));
    return load(lanes);
}
INLINE void store_first(float* p, int64_t count, Lanes x) {
    float lanes[16];
    store(lanes, x);
    std::memcpy(p, lanes, size_t(count) * sizeof(float));
}

// Calls body(i, load, store) for every run of 16 of [0, n) and for the shorter rest.
template <class Body>
INLINE void each_run(int64_t n, Body body) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) body([i](const float* p) INLINE_LAMBDA { return load(p + i); },
                                      [i](float* p, Lanes x) INLINE_LAMBDA { store(p + i, x); });
    if (i < n) body([i, n](const float* p) INLINE_LAMBDA { return load_first(p + i, n - i); },
                    [i, n](float* p, Lanes x) INLINE_LAMBDA { store_first(p + i, n - i, x); });
}

// out = (x + residual) normalised and weighted; the sum itself goes to `sum`. Without a residual sum is not written.
void rms_norm(const float* x, const float* residual, const float* weight, float eps, int64_t d, float* total, float* out) {
    Lanes squares = zero();
    each_run(d, [&](auto get, auto put) INLINE_LAMBDA {
        Lanes value = get(x);
        if (residual) {
            value = add(value, get(residual));
            put(total, value);
        }
        squares = fma(value, value, squares);
    });
    const float* source = residual ? total : x;
    const Lanes factor = all(1.0f / std::sqrt(sum(squares) / float(d) + eps));
    each_run(d, [&](auto get, auto put) INLINE_LAMBDA { put(out, mul(mul(get(source), factor), get(weight))); });
}

void swiglu(const float* gate, const float* up, int64_t ff, float* out) {
    each_run(ff, [&](auto get, auto put) INLINE_LAMBDA {
        const Lanes g = get(gate);
        put(out, mul(div(g, add(all(1.0f), exponential(sub(zero(), g)))), get(up)));
    });
}

void rotate(float* head, const float* cos_sin, int64_t d) {
    const int64_t half = d / 2;
    float* second = head + half;
    const float* sine = cos_sin + half;
    each_run(half, [&](auto get, auto put) INLINE_LAMBDA {
        const Lanes a = get(head), b = get(second), c = get(cos_sin), s = get(sine);
        put(head, sub(mul(a, c), mul(b, s)));
        put(second, add(mul(b, c), mul(a, s)));
    });
}

void mask(float* logits, const uint32_t* bits, int64_t vocabulary) {
    for (int64_t first = 0; first < vocabulary; first += 32, bits++) {
        const uint32_t word = *bits;
        if (word == 0xFFFFFFFFu) continue;
        const int64_t rest = vocabulary - first;
        const int tokens = rest < 32 ? int(rest) : 32;
        for (int t = 0; t < tokens; t++)
            logits[first + t] = (word >> t) & 1 ? logits[first + t] : -INFINITY;
    }
}

// out = e to the (logits - peak) * factor, and exactly 0 where that is less than a float can tell from 0, as for -inf.
void weights(const float* logits, float peak, float factor, int64_t n, float* out) {
    const Lanes least = exponential(all(-INFINITY));
    each_run(n, [&](auto get, auto put) INLINE_LAMBDA { put(out, sub(exponential(mul(sub(get(logits), all(peak)), all(factor))), least)); });
}
