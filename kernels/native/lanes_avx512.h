// Sixteen float lanes as one AVX-512 register. Included inside a namespace compiled for AVX-512 F, BW, DQ and VL.

constexpr const char* NAME = "avx512";
constexpr int DIRECT_ROWS = 8, DIRECT_BLOCKS = 3, DIRECT_PANELS = 4, BLOCK_ROWS = 12, BLOCK_PANELS = 2;
// Panels worked on together for so many rows: enough chains to hide the latency of a product.
constexpr int panels_together(int rows) { return rows <= 2 ? 4 : 1; }

using Lanes = __m512;
using Words = __m512i;

INLINE Lanes all(float x) { return _mm512_set1_ps(x); }
INLINE Lanes zero() { return _mm512_setzero_ps(); }
INLINE Lanes load(const float* p) { return _mm512_loadu_ps(p); }
INLINE void store(float* p, Lanes x) { _mm512_storeu_ps(p, x); }
INLINE Lanes add(Lanes x, Lanes y) { return _mm512_add_ps(x, y); }
INLINE Lanes sub(Lanes x, Lanes y) { return _mm512_sub_ps(x, y); }
INLINE Lanes mul(Lanes x, Lanes y) { return _mm512_mul_ps(x, y); }
INLINE Lanes div(Lanes x, Lanes y) { return _mm512_div_ps(x, y); }
INLINE Lanes fma(Lanes x, Lanes y, Lanes z) { return _mm512_fmadd_ps(x, y, z); }
// y where one of them is not a number.
INLINE Lanes max(Lanes x, Lanes y) { return _mm512_max_ps(x, y); }
INLINE Lanes min(Lanes x, Lanes y) { return _mm512_min_ps(x, y); }
INLINE Lanes nearest(Lanes x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// x times 2 to the whole number n.
INLINE Lanes scale_by_power(Lanes x, Lanes n) { return _mm512_scalef_ps(x, n); }

INLINE __m256 fold_half(Lanes x) { return _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)); }
INLINE float sum(Lanes x) {
    const __m256 eight = fold_half(x);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}
INLINE float greatest(Lanes x) { return _mm512_reduce_max_ps(x); }
// out[i] = sum of x[i]'s lanes, for four at once.
INLINE void sum_four(const Lanes (&x)[4], float* out) {
    const __m256 low = _mm256_hadd_ps(fold_half(x[0]), fold_half(x[1]));
    const __m256 high = _mm256_hadd_ps(fold_half(x[2]), fold_half(x[3]));
    const __m256 both = _mm256_hadd_ps(low, high);
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(both), _mm256_extractf128_ps(both, 1)));
}

INLINE Lanes load_half(const uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
INLINE Lanes load_brain(const uint16_t* p) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
}
INLINE Lanes load_int8(const int8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
INLINE Words load_words(const uint8_t* p) { return _mm512_loadu_si512(p); }
// Nibble t (0..7) of every word as a number: a look-up by the lowest four bits, so nothing needs masking or converting.
INLINE Lanes nibble(Words w, int t) {
    const Lanes numbers = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_permutexvar_ps(_mm512_srli_epi32(w, 4 * t), numbers);
}
