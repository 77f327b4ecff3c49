// What edges ask of a frame's registers, and what they do to them.

#include <algorithm>

#include "run.h"

namespace grammar {

namespace {

constexpr int32_t MANY_EDGES = 64;

}  // namespace

bool Run::allows(const Frame& f, int32_t edge) const {
    const int64_t x = t_->edge_x[edge];
    switch (t_->edge_op[edge]) {
        case ALWAYS: return true;
        case TAKE: return f.b > x;
        case DONE: return f.a == 0;
        case KEY_IN: {
            const int32_t *first = t_->keys + x, *last = t_->keys + t_->edge_y[edge];
            const int32_t* key = std::lower_bound(first, last, f.a);
            return key != last && *key <= f.b;
        }
        case KEY: return f.a <= x && x <= f.b;
        case ALL_REQUIRED: return f.b == UNBOUNDED;
        case UNSEEN: return !((x < WIDE_AT ? f.a >> x : f.b >> (x - WIDE_AT)) & 1);
        case ANY_UNSEEN: return (~f.a & x) != 0 || (~f.b & t_->edge_y[edge]) != 0;
        case ALL_SEEN: return (f.a & x) == x && (f.b & t_->edge_y[edge]) == t_->edge_y[edge];
        default: {
            Registers registers{f.a, f.b, f.c};
            return t_->tally.apply(registers, t_->edge_op[edge], x, t_->edge_y[edge]);
        }
    }
}

// Does to the registers what an allowed edge, or a call, asks for.
bool Run::apply(Frame& f, uint8_t op, int64_t x, int64_t y) const {
    switch (op) {
        case TAKE:
            if (f.a > 0) --f.a;
            if (f.b != UNBOUNDED) --f.b;
            return true;
        case KEY:
            f.a = x + 1, f.b = y;
            return true;
        case UNSEEN:
            (x < WIDE_AT ? f.a : f.b) |= int64_t(1) << (x < WIDE_AT ? x : x - WIDE_AT);
            return true;
        case NAME: case OTHER: case SERVE: case NEXT_ITEM: case COUNT: {
            Registers registers{f.a, f.b, f.c};
            const bool allowed = t_->tally.apply(registers, op, x, y);
            f.a = registers.a, f.b = registers.b, f.c = registers.c;
            return allowed;
        }
        default: return true;
    }
}

// The first edge of a state that ends at or after a code point.
int32_t Run::first_edge(int32_t state, int32_t point) const {
    int32_t low = t_->edge_begin[state], high = t_->edge_begin[state + 1];
    if (high - low > 8) return int32_t(std::lower_bound(t_->edge_high + low, t_->edge_high + high, point) - t_->edge_high);
    while (low < high && t_->edge_high[low] < point) ++low;
    return low;
}

int32_t Run::find(const Frame& f, int32_t point) const {
    const int32_t edge = first_edge(f.state, point);
    return edge < t_->edge_begin[f.state + 1] && t_->edge_low[edge] <= point && allows(f, edge) ? edge : -1;
}

bool Run::open(const Frame& f, int32_t low, int32_t high) const {
    const int32_t last = t_->edge_begin[f.state + 1];
    for (int32_t e = first_edge(f.state, low); low <= high && e < last && t_->edge_low[e] <= high; ++e)
        if (allows(f, e)) return true;
    return false;
}

void Run::take(const Frame& f, int32_t point, Frames& out) {
    const int32_t edge = find(f, point);
    if (edge < 0) return;
    if (t_->distinct) return take_recorded(f, edge, point, out);
    const int32_t target = t_->edge_target[edge];
    if (target == POP) {
        if (f.link) out.insert(out.end(), f.link->begin(), f.link->end());
        return;
    }
    out.push_back(Frame{target, 0, f.a, f.b, f.c, f.memory, f.link});
    apply(out.back(), t_->edge_op[edge], t_->edge_x[edge], t_->edge_y[edge]);
}

void Run::may_read(const Frame& f, Bytes& bytes) const {
    const int32_t first = t_->edge_begin[f.state], last = t_->edge_begin[f.state + 1];
    const bool text = t_->mode[f.state] != RAW;
    if (last - first > MANY_EDGES || (text && f.partial)) return bytes.add(0, 255);
    for (int32_t e = first; e < last; ++e) {
        if (t_->edge_low[e] == CLOSE) {
            bytes.add('"');
            continue;
        }
        bytes.add(t_->edge_low[e], std::min(t_->edge_high[e], text ? 127 : 255));
        if (text && t_->edge_high[e] >= 0x80) bytes.add(0xC2, 0xF4);
    }
    if (text && t_->mode[f.state] != TEXT) bytes.add('\\');
    if (t_->space[f.state] == SPACES)
        for (uint8_t byte : {' ', '\n', '\t'}) bytes.add(byte);
    if (t_->space[f.state] > SPACES) bytes.add(' ');
}

}  // namespace grammar
