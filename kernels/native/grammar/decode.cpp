// Text states read characters: UTF-8 and JSON's escapes are taken apart here, byte by byte, as ReferenceMachine does.

#include <algorithm>

#include "run.h"

namespace grammar {

namespace {

constexpr int32_t FIRST_OF_LENGTH[4] = {0, 0x80, 0x800, 0x10000};
constexpr Range ONLY_HEX[] = {{0x00, 0x07}, {0x0B, 0x0B}, {0x0E, 0x1F}};
constexpr Range NEVER_BARE[] = {{0x00, 0x1F}, {'"', '"'}, {'\\', '\\'}};

int hex_value(uint8_t byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
    return -1;
}

int32_t short_escape(uint8_t byte) {
    switch (byte) {
        case '"': case '\\': case '/': return byte;
        case 'b': return 8; case 'f': return 12;
        case 'n': return 10; case 'r': return 13; case 't': return 9;
        default: return -1;
    }
}

void keep(const Frame& f, uint32_t partial, Frames& out) {
    if (!partial) return;
    out.push_back(f);
    out.back().partial = partial;
}

template <size_t N, typename Open>
bool any_open(const Range (&ranges)[N], Open open) {
    return std::any_of(ranges, ranges + N, [&](const Range& r) { return open(r.low, r.high); });
}

}  // namespace

void Run::first_byte(const Frame& f, uint8_t byte, Frames& out) {
    if (t_->mode[f.state] != TEXT) {
        if (byte == '"') return take(f, CLOSE, out);
        if (byte == '\\') {
            const bool possible = plain(f) ? any_open(NEVER_BARE, [&](int32_t low, int32_t high) { return open(f, low, high); })
                                           : open(f, 0, CLOSE - 1);
            return keep(f, possible ? ESCAPE << 28 : 0, out);
        }
        if (byte < 0x20) return;
    }
    if (byte < 0x80) return take(f, byte, out);
    if (byte >= 0xC2 && byte <= 0xDF) return keep(f, utf8(f, UTF8_2, 1, byte & 0x1F), out);
    if (byte >= 0xE0 && byte <= 0xEF) return keep(f, utf8(f, UTF8_3, 2, byte & 0x0F), out);
    if (byte >= 0xF0 && byte <= 0xF4) return keep(f, utf8(f, UTF8_4, 3, byte & 0x07), out);
}

uint32_t Run::utf8(const Frame& f, uint32_t kind, uint32_t count, uint32_t value) const {
    const int32_t low = int32_t(value << 6 * count), high = int32_t((value + 1) << 6 * count) - 1;
    if (!open(f, std::max(low, FIRST_OF_LENGTH[kind]), std::min(high, CLOSE - 1))) return 0;
    return kind << 28 | count << 24 | value;
}

void Run::inside(const Frame& f, uint8_t byte, Frames& out) {
    const uint32_t kind = f.partial >> 28, count = f.partial >> 24 & 15, value = f.partial & 0xFFFFFF;
    if (kind <= UTF8_4) {
        if (byte < 0x80 || byte > 0xBF) return;
        const uint32_t more = value << 6 | (byte & 0x3F);
        return count == 1 ? take(f, int32_t(more), out) : keep(f, utf8(f, kind, count - 1, more), out);
    }
    if (kind == ESCAPE) {
        const int32_t point = short_escape(byte);
        if (point >= 0) return plain(f) && byte == '/' ? void() : take(f, point, out);
        const bool possible = !plain(f) || any_open(ONLY_HEX, [&](int32_t low, int32_t high) { return open(f, low, high); });
        return keep(f, byte == 'u' && possible ? HEX << 28 : 0, out);
    }
    if (kind == HIGH) return keep(f, byte == '\\' ? HIGH_ESCAPE << 28 | value : 0, out);
    if (kind == HIGH_ESCAPE) return keep(f, byte == 'u' ? HIGH_HEX << 28 | value << 12 : 0, out);
    const int digit = hex_value(byte);
    if (digit < 0) return;
    if (plain(f)) return byte >= 'A' && byte <= 'F' ? void() : plain_hex_digit(f, count + 1, value << 4 | uint32_t(digit), out);
    return kind == HEX ? hex_digit(f, count + 1, value << 4 | uint32_t(digit), out) : low_digit(f, count, value, digit, out);
}

void Run::plain_hex_digit(const Frame& f, uint32_t count, uint32_t value, Frames& out) {
    const uint32_t shift = 4 * (4 - count);
    const int32_t low = int32_t(value << shift), high = int32_t((value + 1) << shift) - 1;
    const auto possible = [&](int32_t first, int32_t last) { return open(f, std::max(low, first), std::min(high, last)); };
    if (!any_open(ONLY_HEX, possible)) return;
    return count == 4 ? take(f, int32_t(value), out) : keep(f, HEX << 28 | count << 24 | value, out);
}

void Run::hex_digit(const Frame& f, uint32_t count, uint32_t value, Frames& out) {
    if (count == 4 && (value < 0xD800 || value > 0xDFFF)) return take(f, int32_t(value), out);
    const uint32_t shift = 4 * (4 - count);
    const int32_t low = int32_t(value << shift), high = int32_t((value + 1) << shift) - 1;
    const int32_t first = std::max(low, 0xD800) - 0xD800, last = std::min(high, 0xDBFF) - 0xD800;
    const bool pair = first <= last && open(f, 0x10000 + (first << 10), 0x10000 + (last << 10) + 0x3FF);
    if (count == 4) return keep(f, pair ? HIGH << 28 | uint32_t(first) : 0, out);
    keep(f, pair || open(f, low, high) ? HEX << 28 | count << 24 | value : 0, out);
}

void Run::low_digit(const Frame& f, uint32_t count, uint32_t value, int digit, Frames& out) {
    if (count == 0) return keep(f, digit == 0xD ? HIGH_HEX << 28 | 1u << 24 | value : 0, out);
    if (count == 1 && digit < 0xC) return;
    const uint32_t high = value >> 12, low = (value & 0xFFF) << 4 | uint32_t(count == 1 ? digit & 3 : digit);
    const int32_t point = int32_t(0x10000 + (high << 10));
    ++count;
    if (count == 4) return take(f, point | int32_t(low), out);
    const uint32_t shift = 4 * (4 - count);
    if (!open(f, point | int32_t(low << shift), point | int32_t(((low + 1) << shift) - 1))) return;
    keep(f, HIGH_HEX << 28 | count << 24 | high << 12 | low, out);
}

// The code points that a character begun so can turn out to be: appends them as ranges.
void may_become(uint8_t mode, uint32_t partial, std::vector<Range>& ranges) {
    const uint32_t kind = partial >> 28, count = partial >> 24 & 15, value = partial & 0xFFFFFF;
    const auto add = [&](int32_t low, int32_t high) {
        if (low <= high) ranges.push_back({low, high});
    };
    const int32_t shift = 4 * (4 - int32_t(count));
    if (kind == NONE) return add(0, CLOSE);
    if (kind <= UTF8_4) return add(int32_t(value << 6 * count), int32_t((value + 1) << 6 * count) - 1);
    if (kind == ESCAPE) {
        if (mode == JSON_STRING) return add(0, CLOSE - 1);
        for (const Range& r : NEVER_BARE) add(r.low, r.high);
        return;
    }
    if (kind == HEX) {
        const int32_t low = int32_t(value << shift), high = int32_t((value + 1) << shift) - 1;
        if (mode == JSON_PLAIN) {
            for (const Range& r : ONLY_HEX) add(std::max(low, r.low), std::min(high, r.high));
            return;
        }
        add(low, high);
        const int32_t first = std::max(low, 0xD800) - 0xD800, last = std::min(high, 0xDBFF) - 0xD800;
        if (first <= last) add(0x10000 + (first << 10), 0x10000 + (last << 10) + 0x3FF);
        return;
    }
    const int32_t point = int32_t(0x10000 + ((kind == HIGH_HEX ? value >> 12 : value) << 10));
    if (kind != HIGH_HEX || count < 2) return add(point, point + 0x3FF);
    const int32_t low = int32_t(value & 0xFFF);
    add(point | low << shift, point | (((low + 1) << shift) - 1));
}

}  // namespace grammar
