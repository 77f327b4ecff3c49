// f16 and bf16 as they lie in weights, without hardware for them.
#pragma once

#include <cstdint>
#include <cstring>

namespace turnstile {

inline float bits_to_float(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline float brain_to_float(uint16_t brain) { return bits_to_float(uint32_t(brain) << 16); }

inline float half_to_float(uint16_t half) {
    const uint32_t sign = uint32_t(half & 0x8000) << 16, exponent = (half >> 10) & 31, fraction = half & 1023;
    if (exponent == 31) return bits_to_float(sign | 0x7F800000 | fraction << 13);
    if (exponent > 0) return bits_to_float(sign | (exponent + 112) << 23 | fraction << 13);
    const float small = float(fraction) * 5.9604644775390625e-8f;      // 2^-24: denormals are whole multiples of it
    return sign ? -small : small;
}

}  // namespace turnstile
