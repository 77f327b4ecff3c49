// Sixteen float lanes as a compiler vector: whatever registers the baseline of the target offers. For any CPU.

constexpr const char* NAME = "portable";
constexpr int DIRECT_ROWS = 2, DIRECT_BLOCKS = 1, DIRECT_PANELS = 1, BLOCK_ROWS = 2, BLOCK_PANELS = 1;
constexpr int panels_together(int) { return 1; }

typedef float Lanes __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef int32_t Integers __attribute__((vector_size(64)));

INLINE Lanes zero() { return Lanes{}; }
INLINE Lanes all(float x) { return x - Lanes{}; }
INLINE Lanes load(const float* p) {
    Lanes x;
    std::memcpy(&x, p, sizeof x);
    return x;
}
INLINE void store(float* p, Lanes x) { std::memcpy(p, &x, sizeof x); }
INLINE Lanes add(Lanes x, Lanes y) { return x + y; }
INLINE Lanes sub(Lanes x, Lanes y) { return x - y; }
INLINE Lanes mul(Lanes x, Lanes y) { return x * y; }
INLINE Lanes div(Lanes x, Lanes y) { return x / y; }
// Not fused: a fused product without hardware for it would be a slow library call.
INLINE Lanes fma(Lanes x, Lanes y, Lanes z) { return x * y + z; }
// y where one of them is not a number.
INLINE Lanes max(Lanes x, Lanes y) { return x > y ? x : y; }
INLINE Lanes min(Lanes x, Lanes y) { return x < y ? x : y; }
INLINE Lanes nearest(Lanes x) {
    const Lanes shift = all(12582912.0f);       // 1.5 * 2^23: adding it leaves no bits for a fraction
    return (x + shift) - shift;
}
// x times 2 to the whole number n.
INLINE Lanes scale_by_power(Lanes x, Lanes n) {
    const Integers exponent = __builtin_convertvector(n, Integers);
    return reinterpret_cast<Lanes>(reinterpret_cast<Integers>(x) + (exponent << 23));
}
INLINE float sum(Lanes x) {
    float eight[8], four[4];
    for (int i = 0; i < 8; i++) eight[i] = x[i] + x[i + 8];
    for (int i = 0; i < 4; i++) four[i] = eight[i] + eight[i + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}
INLINE float greatest(Lanes x) {
    float most = x[0];
    for (int i = 1; i < 16; i++) most = most < x[i] ? x[i] : most;
    return most;
}
// out[i] = sum of x[i]'s lanes, for four at once.
INLINE void sum_four(const Lanes (&x)[4], float* out) {
    for (int i = 0; i < 4; i++) out[i] = sum(x[i]);
}

INLINE Lanes load_half(const uint16_t* p) {
    float x[16];
    for (int i = 0; i < 16; i++) x[i] = half_to_float(p[i]);
    return load(x);
}
INLINE Lanes load_brain(const uint16_t* p) {
    Words w;
    for (int i = 0; i < 16; i++) w[i] = uint32_t(p[i]) << 16;
    return reinterpret_cast<Lanes>(w);
}
INLINE Lanes load_int8(const int8_t* p) {
    float x[16];
    for (int i = 0; i < 16; i++) x[i] = p[i];
    return load(x);
}
INLINE Words load_words(const uint8_t* p) {
    Words w;
    std::memcpy(&w, p, sizeof w);
    return w;
}
// Nibble t (0..7) of every word as a number.
INLINE Lanes nibble(Words w, int t) { return __builtin_convertvector(reinterpret_cast<Integers>((w >> (4 * t)) & 15u), Lanes); }
