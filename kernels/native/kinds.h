// How the panels of each kind of weight are read. Included once per instruction set, after its lanes.
//
// A panel holds 16 output rows, lane by lane. Its groups follow each other along the input; a group has WORDS
// loads and each load gives VALUES inputs. Every kind's value() is the exact float32 of the file's weight, so
// a product with it is an ordinary float32 product, whatever the quantisation.

struct NoScale {};

struct KindF32 {
    static constexpr int INPUTS = 1, BYTES = 64, WORDS = 1, VALUES = 1;
    using Scale = NoScale;
    using Word = Lanes;
    INLINE static Scale scale(const uint8_t*) { return {}; }
    INLINE static Word word(const uint8_t* group, int) { return load(reinterpret_cast<const float*>(group)); }
    INLINE static Lanes value(Word w, int, const Scale&) { return w; }
};

struct KindF16 {
    static constexpr int INPUTS = 1, BYTES = 32, WORDS = 1, VALUES = 1;
    using Scale = NoScale;
    using Word = Lanes;
    INLINE static Scale scale(const uint8_t*) { return {}; }
    INLINE static Word word(const uint8_t* group, int) { return load_half(reinterpret_cast<const uint16_t*>(group)); }
    INLINE static Lanes value(Word w, int, const Scale&) { return w; }
};

struct KindBF16 {
    static constexpr int INPUTS = 1, BYTES = 32, WORDS = 1, VALUES = 1;
    using Scale = NoScale;
    using Word = Lanes;
    INLINE static Scale scale(const uint8_t*) { return {}; }
    INLINE static Word word(const uint8_t* group, int) { return load_brain(reinterpret_cast<const uint16_t*>(group)); }
    INLINE static Lanes value(Word w, int, const Scale&) { return w; }
};

struct KindQ8_0 {      // f16 scales [16], then int8 [32][16]
    static constexpr int INPUTS = 32, BYTES = 544, WORDS = 32, VALUES = 1;
    using Scale = Lanes;
    using Word = Lanes;
    INLINE static Scale scale(const uint8_t* group) { return load_half(reinterpret_cast<const uint16_t*>(group)); }
    INLINE static Word word(const uint8_t* group, int j) {
        return load_int8(reinterpret_cast<const int8_t*>(group + 32 + 16 * j));
    }
    INLINE static Lanes value(Word w, int, const Scale& d) { return mul(w, d); }
};

struct KindQ4_1 {      // f16 scales [16], f16 minima [16], then words [4][16]: word j's nibble t is input 8 j + t
    static constexpr int INPUTS = 32, BYTES = 320, WORDS = 4, VALUES = 8;
    struct Scale {
        Lanes d, m;
    };
    using Word = Words;
    INLINE static Scale scale(const uint8_t* group) {
        const uint16_t* halves = reinterpret_cast<const uint16_t*>(group);
        return {load_half(halves), load_half(halves + 16)};
    }
    INLINE static Word word(const uint8_t* group, int j) { return load_words(group + 64 + 64 * j); }
    INLINE static Lanes value(Word w, int t, const Scale& s) { return fma(nibble(w, t), s.d, s.m); }
};

struct KindQ4_0 {      // f16 scales [16], then words as in Q4_1; -8 d takes the place of the minimum
    static constexpr int INPUTS = 32, BYTES = 288, WORDS = 4, VALUES = 8;
    using Scale = KindQ4_1::Scale;
    using Word = Words;
    INLINE static Scale scale(const uint8_t* group) {
        const Lanes d = load_half(reinterpret_cast<const uint16_t*>(group));
        return {d, mul(d, all(-8.0f))};
    }
    INLINE static Word word(const uint8_t* group, int j) { return load_words(group + 32 + 64 * j); }
    INLINE static Lanes value(Word w, int t, const Scale& s) { return fma(nibble(w, t), s.d, s.m); }
};
