#include "tally.h"

#include <algorithm>

#include "tables.h"

namespace grammar {

namespace {

constexpr int CLOSED_SHIFT = 32, COUNTER_BITS = 12, MOST_COUNTERS = 4, MOST_SETS = 64;
constexpr int64_t MEMBERS = (int64_t(1) << CLOSED_SHIFT) - 1, OBLIGATIONS = MOST_SETS - 1, COUNTER = (1 << COUNTER_BITS) - 1;

int64_t members(const Registers& r) { return r.c & MEMBERS; }
int64_t closed(const Registers& r) { return r.c >> CLOSED_SHIFT & OBLIGATIONS; }
Registers with_closed(Registers r, int64_t served) { return r.c |= served << CLOSED_SHIFT, r; }

}  // namespace

bool Tally::apply(Registers& r, uint8_t op, int64_t x, int64_t y) const {
    switch (op) {
        case NAME: return name(r, x, y);
        case OTHER: return other(r, x, y);
        case SERVE: r = with_closed(r, x); return can_finish(r, y, 0);
        case NAME_IN: return some_name(r, x, y);
        case MORE: return can_finish(r, y, 1);
        case CLOSE_OBJECT: return may_close(r, y);
        default: return in_array(r, op, x, y);
    }
}

// Whether some number from `least` to `most` is in a row.
bool Tally::fits(int64_t row, int64_t least, int64_t most) const {
    for (int32_t i = row_begin[row]; i < row_begin[row + 1]; ++i)
        if (std::max(row_low[i], least) <= std::min(row_high[i], most)) return true;
    return false;
}

bool Tally::name(Registers& r, int64_t x, int64_t object) const {
    const int32_t first = object_numbers[object];
    if (!object_ordered[object]) {
        if (r.a >> x & 1) return false;
        r.a |= int64_t(1) << x;
    } else {
        if (r.a > x || x > r.b) return false;
        for (int64_t skipped = r.a; skipped < x && object_obligations[object]; ++skipped)
            r = with_closed(r, number_absent[first + skipped]);
        r.a = x + 1, r.b = number_next[first + x];
    }
    r.c = counted(r.c, object);
    return some_value(r, x, object);
}

bool Tally::other(Registers& r, int64_t x, int64_t object) const {
    r.c = counted(r.c, object);
    return some_value(r, x, object);
}

bool Tally::some_name(const Registers& r, int64_t range, int64_t object) const {
    for (int64_t i = range >> 32; i < (range & 0xFFFFFFFF); ++i) {
        Registers after = r;
        if (keys[i] < object_names[object] ? name(after, keys[i], object) : other(after, keys[i], object)) return true;
    }
    return false;
}

// Whether, with some value of member x, which is counted, the object can be finished.
bool Tally::some_value(const Registers& r, int64_t x, int64_t object) const {
    const int32_t number = object_numbers[object] + int32_t(x);
    for (int32_t i = number_choices[number]; i < number_choices[number + 1]; ++i)
        if (can_finish(with_closed(r, choices[i]), object, 0)) return true;
    return false;
}

bool Tally::can_finish(const Registers& r, int64_t object, int64_t at_least) const {
    const int64_t least = std::max(object_least[object] - members(r), at_least);
    const int64_t most = object_most[object] == UNBOUNDED ? UNBOUNDED : object_most[object] - members(r);
    if (!object_ordered[object]) return can_finish_unordered(r, object, least, most);
    return fits(object_rows[object] + (r.a << object_obligations[object] | closed(r)), least, most);
}

// All ways of the unseen names: for each set of obligations closed then, how many names may have been taken, as bits.
bool Tally::can_finish_unordered(const Registers& r, int64_t object, int64_t least, int64_t most) const {
    const int32_t first = object_numbers[object], n_names = object_names[object];
    const int n_sets = 1 << object_obligations[object];
    uint64_t ways[MOST_SETS] = {}, following[MOST_SETS];
    ways[closed(r)] = 1;
    for (int32_t x = 0; x < n_names; ++x) {
        if (r.a >> x & 1) continue;
        const int32_t number = first + x;
        std::fill(following, following + n_sets, 0);
        for (int before = 0; before < n_sets; ++before) {
            if (!ways[before]) continue;
            if (!number_required[number]) following[before | number_absent[number]] |= ways[before];
            for (int32_t i = number_choices[number]; i < number_choices[number + 1]; ++i)
                following[before | choices[i]] |= ways[before] << 1;
        }
        std::copy(following, following + n_sets, ways);
    }
    for (int reached = 0; reached < n_sets; ++reached)
        for (int32_t taken = 0; taken < MOST_SETS && ways[reached] >> taken; ++taken)
            if ((ways[reached] >> taken & 1) && fits(object_rows[object] + reached, least - taken, most - taken)) return true;
    return false;
}

bool Tally::may_close(const Registers& r, int64_t object) const {
    const int32_t first = object_numbers[object];
    const bool ordered = object_ordered[object];
    if (ordered && r.b != UNBOUNDED) return false;
    int64_t reached = closed(r);
    for (int64_t x = ordered ? r.a : 0; x < object_names[object]; ++x) {
        if (!ordered && r.a >> x & 1) continue;
        if (!ordered && number_required[first + x]) return false;
        reached |= number_absent[first + x];
    }
    const int64_t all = (int64_t(1) << object_obligations[object]) - 1;
    return reached == all && object_least[object] <= members(r) && members(r) <= object_most[object];
}

// One member more; beyond the least number it does not matter how many, where any number may come.
int64_t Tally::counted(int64_t c, int64_t object) const {
    return object_most[object] == UNBOUNDED && (c & MEMBERS) >= object_least[object] ? c : c + 1;
}

bool Tally::in_array(Registers& r, uint8_t op, int64_t x, int64_t place) const {
    const int32_t* caps = place_cap + MOST_COUNTERS * place;
    const uint8_t* strict = place_strict + MOST_COUNTERS * place;
    int64_t row = place_rows[place], stride = 1, packed = r.c >> DEPTH_SHIFT << DEPTH_SHIFT;
    for (int i = 0; i < place_counters[place]; ++i) {
        int64_t counter = r.c >> (COUNTER_BITS * i) & COUNTER;
        if (op == COUNT && (x >> i & 1)) {
            if (counter == caps[i] && strict[i]) return false;
            counter = std::min<int64_t>(counter + 1, caps[i]);
        }
        row += counter * stride, stride *= caps[i] + 1;
        packed |= counter << (COUNTER_BITS * i);
    }
    if (op == CLOSE_ARRAY) return r.a == 0 && fits(row, 0, 0);
    if (op == COUNT) return r.c = packed, fits(row, r.a, r.b);
    if (!fits(row, std::max<int64_t>(r.a, 1), r.b)) return false;
    if (r.a > 0) --r.a;
    if (r.b != UNBOUNDED) --r.b;
    return true;
}

}  // namespace grammar
