// Sixteen float lanes as two AVX registers. Included inside a namespace compiled for AVX2, FMA and F16C.

constexpr const char* NAME = "avx2";
constexpr int DIRECT_ROWS = 6, DIRECT_BLOCKS = 2, DIRECT_PANELS = 2, BLOCK_ROWS = 6, BLOCK_PANELS = 1;
// Panels worked on together for so many rows: enough chains to hide the latency of a product.
constexpr int panels_together(int rows) { return rows == 1 ? 2 : 1; }

struct Lanes {
    __m256 a, b;
};
struct Words {
    __m256i a, b;
};

INLINE Lanes all(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
INLINE Lanes zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
INLINE Lanes load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
INLINE void store(float* p, Lanes x) { _mm256_storeu_ps(p, x.a), _mm256_storeu_ps(p + 8, x.b); }
INLINE Lanes add(Lanes x, Lanes y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
INLINE Lanes sub(Lanes x, Lanes y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
INLINE Lanes mul(Lanes x, Lanes y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
INLINE Lanes div(Lanes x, Lanes y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
INLINE Lanes fma(Lanes x, Lanes y, Lanes z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
// y where one of them is not a number.
INLINE Lanes max(Lanes x, Lanes y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
INLINE Lanes min(Lanes x, Lanes y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
INLINE Lanes nearest(Lanes x) {
    constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(x.a, mode), _mm256_round_ps(x.b, mode)};
}
// x times 2 to the whole number n.
INLINE __m256 scale_half(__m256 x, __m256 n) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)));
}
INLINE Lanes scale_by_power(Lanes x, Lanes n) { return {scale_half(x.a, n.a), scale_half(x.b, n.b)}; }

INLINE float sum(Lanes x) {
    const __m256 eight = _mm256_add_ps(x.a, x.b);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}
INLINE float greatest(Lanes x) {
    const __m256 eight = _mm256_max_ps(x.a, x.b);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}
// out[i] = sum of x[i]'s lanes, for four at once.
INLINE void sum_four(const Lanes (&x)[4], float* out) {
    const __m256 low = _mm256_hadd_ps(_mm256_add_ps(x[0].a, x[0].b), _mm256_add_ps(x[1].a, x[1].b));
    const __m256 high = _mm256_hadd_ps(_mm256_add_ps(x[2].a, x[2].b), _mm256_add_ps(x[3].a, x[3].b));
    const __m256 both = _mm256_hadd_ps(low, high);
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(both), _mm256_extractf128_ps(both, 1)));
}

INLINE __m128i load_bytes16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
INLINE Lanes load_half(const uint16_t* p) { return {_mm256_cvtph_ps(load_bytes16(p)), _mm256_cvtph_ps(load_bytes16(p + 8))}; }
INLINE __m256 widen_brain(const uint16_t* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_bytes16(p)), 16));
}
INLINE Lanes load_brain(const uint16_t* p) { return {widen_brain(p), widen_brain(p + 8)}; }
INLINE Lanes load_int8(const int8_t* p) {
    const __m128i bytes = load_bytes16(p);
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
INLINE Words load_words(const uint8_t* p) {
    const __m256i* words = reinterpret_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(words), _mm256_loadu_si256(words + 1)};
}
// Nibble t (0..7) of every word as a number.
INLINE Lanes nibble(Words w, int t) {
    const __m256i low = _mm256_set1_epi32(15);
    return {_mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(w.a, 4 * t), low)),
            _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(w.b, 4 * t), low))};
}
