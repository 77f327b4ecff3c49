// The pushdown machine of kernels/pushdown.py and its walk over the token trie. That module defines what every table and
// every operation means; here are the same steps over flat memory. All functions are pure: positions come and go as
// bytes, tables are only read, so any number of threads may call them.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

enum Mode : uint8_t { RAW = 0, TEXT = 1, JSON_STRING = 2, JSON_PLAIN = 3 };
enum Op : uint8_t { ALWAYS, TAKE, DONE, KEY_IN, KEY, ALL_REQUIRED, UNSEEN, ANY_UNSEEN, ALL_SEEN };
enum Free : uint8_t { FREE = 1, FREE_COUNTED = 2 };
enum Partial : uint32_t { NONE = 0, UTF8_2, UTF8_3, UTF8_4, ESCAPE, HEX, HIGH, HIGH_ESCAPE, HIGH_HEX };

constexpr int32_t POP = -1, NO_CALLS = -1, NO_LINK = -1, CLOSE = 0x110000;
constexpr int64_t UNBOUNDED = int64_t(1) << 62;
constexpr uint32_t MAX_NEWLINES = 2, MAX_INDENT = 64, NO_SPACE = ~0u;
constexpr int32_t FILL_TOO_COSTLY = -2, ADVANCE_TOO_COSTLY = INT32_MIN;   // kernels/trie.py knows these
constexpr int64_t POSITION_BYTES_LIMIT = 1 << 22;
constexpr int32_t FIRST_OF_LENGTH[4] = {0, 0x80, 0x800, 0x10000};
struct Range { int32_t low, high; };
constexpr Range ONLY_HEX[] = {{0x00, 0x07}, {0x0B, 0x0B}, {0x0E, 0x1F}};
constexpr Range NEVER_BARE[] = {{0x00, 0x1F}, {'"', '"'}, {'\\', '\\'}};

struct Tables {
    const uint8_t *mode, *space, *final, *counted, *free;
    const int32_t *edge_begin, *call_list, *call_return, *edge_low, *edge_high, *edge_target;
    const uint8_t* edge_op;
    const int64_t *edge_x, *edge_y;
    const int32_t *list_begin, *call_start;
    const int64_t *call_a, *call_b;
    const int32_t* keys;
    int32_t root;
    int64_t reach;
};

struct Trie {
    const uint8_t *byte, *plain;
    const int32_t *depth, *end, *height, *token_begin, *tokens;
    const uint32_t* plain_row;
    int32_t n_nodes, n_words, longest;
};

struct Frame {
    int32_t state;
    uint32_t partial;
    int64_t a, b;
    int32_t link;
    int32_t zero;   // frames are compared and hashed as memory
    bool operator==(const Frame& o) const { return std::memcmp(this, &o, sizeof(Frame)) == 0; }
    bool operator<(const Frame& o) const {
        if (state != o.state) return state < o.state;
        if (partial != o.partial) return partial < o.partial;
        if (a != o.a) return a < o.a;
        if (b != o.b) return b < o.b;
        return link < o.link;
    }
};
static_assert(sizeof(Frame) == 32, "positions are written as memory");

using Frames = std::vector<Frame>;

void sort_and_drop_twins(Frames& frames) {
    if (frames.size() < 2) return;
    std::sort(frames.begin(), frames.end());
    frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
}

uint32_t next_space(uint32_t partial, uint8_t byte) {
    const uint32_t newlines = partial >> 8, indent = partial & 255;
    if (byte == '\n') return indent == 0 && newlines < MAX_NEWLINES ? (newlines + 1) << 8 : NO_SPACE;
    if (byte == ' ' || (byte == '\t' && newlines)) return indent < (newlines ? MAX_INDENT : 1) ? partial + 1 : NO_SPACE;
    return NO_SPACE;
}

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

// One run of the machine: the sets of frames that links name, and the work done.
class Run {
  public:
    Run(const Tables& tables, int64_t work_limit) : t_(tables), limit_(work_limit), slots_(64, NO_LINK) { begin_.push_back(0); }

    // Once true, what `step` gives is not whole: the run is to be given up.
    bool too_costly() const { return work_ > limit_; }

    // Sets of frames are numbered in the order they come; equal sets get one number.
    int32_t intern(Frames& frames) {
        std::sort(frames.begin(), frames.end());
        size_t slot = hash_of(frames.data(), frames.size()) & (slots_.size() - 1);
        for (; slots_[slot] != NO_LINK; slot = (slot + 1) & (slots_.size() - 1)) {
            const int32_t n = slots_[slot];
            if (size(n) == frames.size() && std::equal(frames.begin(), frames.end(), pool_.begin() + begin_[n])) return n;
        }
        const int32_t number = count();
        pool_.insert(pool_.end(), frames.begin(), frames.end());
        begin_.push_back(pool_.size());
        slots_[slot] = number;
        if (size_t(count()) * 2 > slots_.size()) grow();
        return number;
    }

    size_t size(int32_t link) const { return begin_[link + 1] - begin_[link]; }
    const Frame& at(int32_t link, size_t n) const { return pool_[begin_[link] + n]; }

    // Read a position: link sets, children first, then the configuration itself.
    void read(const uint8_t* data, Frames& frames) {
        int32_t n_sets, n_frames;
        std::memcpy(&n_sets, data, 4);
        data += 8;
        for (int32_t set = 0; set < n_sets; ++set) {
            std::memcpy(&n_frames, data, 4);
            frames.resize(n_frames);
            std::memcpy(frames.data(), data + 8, n_frames * sizeof(Frame));
            data += 8 + n_frames * sizeof(Frame);
            if (set + 1 < n_sets) intern(frames);   // gives the number that it was written under
        }
    }

    // Append a position to `out`; the counterpart of `read`.
    void write(Frames frames, std::vector<uint8_t>& out) const {
        std::sort(frames.begin(), frames.end());
        std::vector<int32_t> number(begin_.size(), NO_LINK), order;
        number_links(frames, number, order);
        put(out, int32_t(order.size()) + 1);
        for (int32_t link : order) put_frames(out, &at(link, 0), size(link), number);
        put_frames(out, frames.data(), frames.size(), number);
    }

    // Breadth first from the top, at most `depth` links, with counts clipped to what can matter.
    void write_key(const Frames& frames, int64_t most, int32_t depth, std::vector<uint8_t>& key) const {
        std::vector<int32_t> number(begin_.size(), NO_LINK), level, below;
        int32_t fresh = 0;
        auto emit = [&](const Frame* at_frames, size_t n, bool last) {
            for (size_t i = 0; i < n; ++i) {
                Frame f = at_frames[i];
                if (f.link != NO_LINK) {
                    if (number[f.link] == NO_LINK) {
                        number[f.link] = fresh++;
                        below.push_back(f.link);
                    }
                    f.link = last ? NO_LINK : number[f.link];
                }
                if (t_.counted[f.state]) {
                    f.a = std::min(f.a, most);
                    f.b = std::min(f.b, most);
                }
                append(key, &f, sizeof f - 4);
            }
            key.push_back(0xFF);
        };
        emit(frames.data(), frames.size(), depth == 1);
        for (int32_t n = 1; n < depth && !below.empty(); ++n) {
            level.swap(below);
            below.clear();
            for (int32_t link : level) emit(&at(link, 0), size(link), n + 1 == depth);
        }
    }

    // The frames and those that they may return to without reading.
    void with_returns(const Frames& frames, Frames& all) {
        all.assign(frames.begin(), frames.end());
        returned_.resize(begin_.size(), 0);
        ++round_;
        for (size_t i = 0; i < all.size(); ++i) {
            const Frame f = all[i];
            if (!t_.final[f.state] || f.partial || f.link == NO_LINK || returned_[f.link] == round_) continue;
            returned_[f.link] = round_;   // once is enough: a link's frames are the same each time
            for (size_t n = 0; n < size(f.link); ++n) all.push_back(at(f.link, n));
        }
    }

    void step(const Frames& from, uint8_t byte, Frames& out) {
        out.clear();
        if (from.size() == 1 && !t_.final[from[0].state]) {
            const Frame& frame = from[0];
            read_byte(frame, byte, out);
            if (t_.call_list[frame.state] != NO_CALLS) call(frame, byte, out);
            ++work_;
        } else {
            step_all(from, byte, out);
        }
        sort_and_drop_twins(out);
    }

    // How many characters of any kind are surely taken here, or -1.
    int64_t free_characters(const Frames& frames) const {
        int64_t most = -1;
        for (const Frame& f : frames)
            if (t_.free[f.state] && !f.partial) most = std::max(most, t_.free[f.state] == FREE ? UNBOUNDED : f.b);
        return most;
    }

    bool may_end(const Frames& frames) {
        Frames all;
        with_returns(frames, all);
        return std::any_of(all.begin(), all.end(), [&](const Frame& f) {
            return t_.final[f.state] && !f.partial && f.link == NO_LINK;
        });
    }

  private:
    // One rule as called from one frame.
    struct Call {
        int32_t start;
        int64_t a, b;
        Frame back;
        bool same_rule(const Call& o) const { return start == o.start && a == o.a && b == o.b; }
        bool operator<(const Call& o) const {
            if (start != o.start) return start < o.start;
            return a != o.a ? a < o.a : b < o.b;
        }
    };

    void step_all(const Frames& from, uint8_t byte, Frames& out) {
        with_returns(from, waiting_);
        const size_t n = waiting_.size();
        work_ += int64_t(n);
        bool calling = false;
        for (size_t i = 0; i < n && !too_costly(); ++i) {
            read_byte(waiting_[i], byte, out);
            calling |= t_.call_list[waiting_[i].state] != NO_CALLS;
        }
        if (calling) call_all(byte, out);
    }

    const Tables& t_;
    int64_t limit_, work_ = 0;         // in frames read and rules called
    uint64_t round_ = 0;
    std::vector<uint64_t> returned_;   // by link: the round in which its frames were returned to
    Frames pool_, waiting_, back_;
    std::vector<Call> calls_;
    std::vector<size_t> begin_;
    std::vector<int32_t> slots_;   // open addressing: set numbers by hash

    int32_t count() const { return int32_t(begin_.size()) - 1; }

    void grow() {
        slots_.assign(slots_.size() * 4, NO_LINK);
        for (int32_t n = 0; n < count(); ++n) {
            size_t slot = hash_of(&at(n, 0), size(n)) & (slots_.size() - 1);
            while (slots_[slot] != NO_LINK) slot = (slot + 1) & (slots_.size() - 1);
            slots_[slot] = n;
        }
    }

    static uint64_t hash_of(const Frame* frames, size_t n) {
        uint64_t h = 1469598103934665603ull;
        for (size_t i = 0; i < n; ++i) {
            const Frame& f = frames[i];
            for (uint64_t x : {uint64_t(uint32_t(f.state)) << 32 | f.partial, uint64_t(f.a), uint64_t(f.b), uint64_t(f.link)}) {
                h = (h ^ x) * 0x9E3779B97F4A7C15ull;
                h ^= h >> 29;
            }
        }
        return h;
    }

    void number_links(const Frames& frames, std::vector<int32_t>& number, std::vector<int32_t>& order) const {
        struct Visit { int32_t link; size_t next; };
        std::vector<Visit> stack;
        auto open = [&](int32_t link) {
            if (link != NO_LINK && number[link] == NO_LINK) {
                number[link] = -2;   // open
                stack.push_back({link, 0});
            }
        };
        for (const Frame& f : frames) {
            open(f.link);
            while (!stack.empty()) {
                Visit& top = stack.back();
                if (top.next < size(top.link)) {
                    open(at(top.link, top.next++).link);
                } else {
                    number[top.link] = int32_t(order.size());
                    order.push_back(top.link);
                    stack.pop_back();
                }
            }
        }
    }

    static void append(std::vector<uint8_t>& out, const void* data, size_t n) {
        const uint8_t* bytes = static_cast<const uint8_t*>(data);
        out.insert(out.end(), bytes, bytes + n);
    }

    static void put(std::vector<uint8_t>& out, int32_t n) {
        const int32_t pair[2] = {n, 0};
        append(out, pair, sizeof pair);
    }

    static void put_frames(std::vector<uint8_t>& out, const Frame* frames, size_t n, const std::vector<int32_t>& number) {
        put(out, int32_t(n));
        for (size_t i = 0; i < n; ++i) {
            Frame f = frames[i];
            if (f.link != NO_LINK) f.link = number[f.link];
            append(out, &f, sizeof f);
        }
    }

    // One caller, so every called rule has the same link.
    void call(const Frame& frame, uint8_t byte, Frames& out) {
        const int32_t which = t_.call_list[frame.state];
        int32_t link = NO_LINK;
        work_ += t_.list_begin[which + 1] - t_.list_begin[which];
        for (int32_t c = t_.list_begin[which]; c < t_.list_begin[which + 1]; ++c) {
            Frame start{t_.call_start[c], 0, t_.call_a[c], t_.call_b[c], NO_LINK, 0};
            if (find(start, byte) < 0) continue;
            if (link == NO_LINK) {
                back_.assign(1, Frame{t_.call_return[frame.state], 0, frame.a, frame.b, frame.link, 0});
                link = intern(back_);
            }
            start.link = link;
            read_byte(start, byte, out);
        }
    }

    // Frames that call the same rule now are its common return address.
    void call_all(uint8_t byte, Frames& out) {
        calls_.clear();
        for (const Frame& frame : waiting_) {
            const int32_t which = t_.call_list[frame.state];
            if (which == NO_CALLS) continue;
            work_ += t_.list_begin[which + 1] - t_.list_begin[which];
            if (too_costly()) return;
            const Frame back{t_.call_return[frame.state], 0, frame.a, frame.b, frame.link, 0};
            for (int32_t c = t_.list_begin[which]; c < t_.list_begin[which + 1]; ++c) {
                const Frame start{t_.call_start[c], 0, t_.call_a[c], t_.call_b[c], NO_LINK, 0};
                if (find(start, byte) >= 0) calls_.push_back({start.state, start.a, start.b, back});
            }
        }
        std::sort(calls_.begin(), calls_.end());
        for (size_t i = 0; i < calls_.size();) {
            const Call rule = calls_[i];
            back_.clear();
            for (; i < calls_.size() && calls_[i].same_rule(rule); ++i) back_.push_back(calls_[i].back);
            sort_and_drop_twins(back_);
            read_byte(Frame{rule.start, 0, rule.a, rule.b, intern(back_), 0}, byte, out);
        }
    }

    bool allows(const Frame& f, int32_t edge) const {
        const int64_t x = t_.edge_x[edge];
        switch (t_.edge_op[edge]) {
            case ALWAYS: return true;
            case TAKE: return f.b > x;
            case DONE: return f.a == 0;
            case KEY_IN: {
                const int32_t *first = t_.keys + x, *last = t_.keys + t_.edge_y[edge];
                const int32_t* key = std::lower_bound(first, last, f.a);
                return key != last && *key <= f.b;
            }
            case KEY: return f.a <= x && x <= f.b;
            case ALL_REQUIRED: return f.b == UNBOUNDED;
            case UNSEEN: return !(f.a >> x & 1);
            case ANY_UNSEEN: return (~f.a & x) != 0;
            default: return (f.a & x) == x;
        }
    }

    // First edge of a state that ends at or after a code point.
    int32_t first_edge(int32_t state, int32_t point) const {
        int32_t low = t_.edge_begin[state], high = t_.edge_begin[state + 1];
        if (high - low > 8) return int32_t(std::lower_bound(t_.edge_high + low, t_.edge_high + high, point) - t_.edge_high);
        while (low < high && t_.edge_high[low] < point) ++low;
        return low;
    }

    // The edge over one code point that the registers allow, or -1.
    int32_t find(const Frame& f, int32_t point) const {
        const int32_t edge = first_edge(f.state, point);
        return edge < t_.edge_begin[f.state + 1] && t_.edge_low[edge] <= point && allows(f, edge) ? edge : -1;
    }

    bool open(const Frame& f, int32_t low, int32_t high) const {
        const int32_t last = t_.edge_begin[f.state + 1];
        for (int32_t e = first_edge(f.state, low); low <= high && e < last && t_.edge_low[e] <= high; ++e)
            if (allows(f, e)) return true;
        return false;
    }

    bool plain(const Frame& f) const { return t_.mode[f.state] == JSON_PLAIN; }

    template <size_t N>
    bool any_open(const Frame& f, const Range (&ranges)[N]) const {
        return std::any_of(ranges, ranges + N, [&](const Range& r) { return open(f, r.low, r.high); });
    }

    void take(const Frame& f, int32_t point, Frames& out) {
        const int32_t edge = find(f, point);
        if (edge < 0) return;
        const int32_t target = t_.edge_target[edge];
        if (target == POP) {
            if (f.link == NO_LINK) return;
            for (size_t n = 0; n < size(f.link); ++n) out.push_back(at(f.link, n));
            return;
        }
        Frame next{target, 0, f.a, f.b, f.link, 0};
        switch (t_.edge_op[edge]) {
            case TAKE:
                if (next.a > 0) --next.a;
                if (next.b != UNBOUNDED) --next.b;
                break;
            case KEY:
                next.a = t_.edge_x[edge] + 1;
                next.b = t_.edge_y[edge];
                break;
            case UNSEEN: next.a |= int64_t(1) << t_.edge_x[edge]; break;
            default: break;
        }
        out.push_back(next);
    }

    void keep(const Frame& f, uint32_t partial, Frames& out) {
        if (!partial) return;
        out.push_back(f);
        out.back().partial = partial;
    }

    void read_byte(const Frame& f, uint8_t byte, Frames& out) {
        if (t_.mode[f.state] == RAW) {
            if (t_.space[f.state] && (byte == ' ' || byte == '\n' || byte == '\t')) {
                const uint32_t partial = next_space(f.partial, byte);
                if (partial != NO_SPACE) keep(f, partial, out);
            } else {
                take(f, byte, out);
            }
        } else if (f.partial) {
            inside(f, byte, out);
        } else {
            first_byte(f, byte, out);
        }
    }

    void first_byte(const Frame& f, uint8_t byte, Frames& out) {
        if (t_.mode[f.state] != TEXT) {
            if (byte == '"') return take(f, CLOSE, out);
            if (byte == '\\') return keep(f, (plain(f) ? any_open(f, NEVER_BARE) : open(f, 0, CLOSE - 1)) ? ESCAPE << 28 : 0, out);
            if (byte < 0x20) return;
        }
        if (byte < 0x80) return take(f, byte, out);
        if (byte >= 0xC2 && byte <= 0xDF) return keep(f, utf8(f, UTF8_2, 1, byte & 0x1F), out);
        if (byte >= 0xE0 && byte <= 0xEF) return keep(f, utf8(f, UTF8_3, 2, byte & 0x0F), out);
        if (byte >= 0xF0 && byte <= 0xF4) return keep(f, utf8(f, UTF8_4, 3, byte & 0x07), out);
    }

    uint32_t utf8(const Frame& f, uint32_t kind, uint32_t count, uint32_t value) const {
        const int32_t low = int32_t(value << 6 * count), high = int32_t((value + 1) << 6 * count) - 1;
        if (!open(f, std::max(low, FIRST_OF_LENGTH[kind]), std::min(high, CLOSE - 1))) return 0;
        return kind << 28 | count << 24 | value;
    }

    void inside(const Frame& f, uint8_t byte, Frames& out) {
        const uint32_t kind = f.partial >> 28, count = f.partial >> 24 & 15, value = f.partial & 0xFFFFFF;
        if (kind <= UTF8_4) {
            if (byte < 0x80 || byte > 0xBF) return;
            const uint32_t more = value << 6 | (byte & 0x3F);
            return count == 1 ? take(f, int32_t(more), out) : keep(f, utf8(f, kind, count - 1, more), out);
        }
        if (kind == ESCAPE) {
            const int32_t point = short_escape(byte);
            if (point >= 0) return plain(f) && byte == '/' ? void() : take(f, point, out);
            return keep(f, byte == 'u' && (!plain(f) || any_open(f, ONLY_HEX)) ? HEX << 28 : 0, out);
        }
        if (kind == HIGH) return keep(f, byte == '\\' ? HIGH_ESCAPE << 28 | value : 0, out);
        if (kind == HIGH_ESCAPE) return keep(f, byte == 'u' ? HIGH_HEX << 28 | value << 12 : 0, out);
        const int digit = hex_value(byte);
        if (digit < 0) return;
        if (plain(f)) return byte >= 'A' && byte <= 'F' ? void() : plain_hex_digit(f, count + 1, value << 4 | digit, out);
        return kind == HEX ? hex_digit(f, count + 1, value << 4 | digit, out) : low_digit(f, count, value, digit, out);
    }

    void plain_hex_digit(const Frame& f, uint32_t count, uint32_t value, Frames& out) {
        const uint32_t shift = 4 * (4 - count);
        const int32_t low = int32_t(value << shift), high = int32_t((value + 1) << shift) - 1;
        bool possible = false;
        for (const Range& r : ONLY_HEX) possible |= open(f, std::max(low, r.low), std::min(high, r.high));
        if (!possible) return;
        return count == 4 ? take(f, int32_t(value), out) : keep(f, HEX << 28 | count << 24 | value, out);
    }

    void hex_digit(const Frame& f, uint32_t count, uint32_t value, Frames& out) {
        if (count == 4 && (value < 0xD800 || value > 0xDFFF)) return take(f, int32_t(value), out);
        const uint32_t shift = 4 * (4 - count);
        const int32_t low = int32_t(value << shift), high = int32_t((value + 1) << shift) - 1;
        const int32_t first = std::max(low, 0xD800) - 0xD800, last = std::min(high, 0xDBFF) - 0xD800;
        const bool pair = first <= last && open(f, 0x10000 + (first << 10), 0x10000 + (last << 10) + 0x3FF);
        if (count == 4) return keep(f, pair ? HIGH << 28 | uint32_t(first) : 0, out);
        keep(f, pair || open(f, low, high) ? HEX << 28 | count << 24 | value : 0, out);
    }

    void low_digit(const Frame& f, uint32_t count, uint32_t value, int digit, Frames& out) {
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
};

// What the caller learns of a position: the lengths of the two texts that follow, and whether the answer may end. The
// position itself is to be handed back; the key names its mask.
int32_t report(Run& run, const Tables& tables, const Frames& frames, int32_t longest, int32_t depth, uint8_t* out, int32_t room) {
    std::vector<uint8_t> bytes(3 * sizeof(int32_t));
    bytes.reserve(1024);
    run.write(frames, bytes);
    const int32_t position = int32_t(bytes.size() - 3 * sizeof(int32_t));
    run.write_key(frames, longest + 1 + tables.reach, depth, bytes);
    const int32_t head[3] = {position, int32_t(bytes.size() - 3 * sizeof(int32_t)) - position, run.may_end(frames)};
    std::memcpy(bytes.data(), head, sizeof head);
    if (int32_t(bytes.size()) > room) return -int32_t(bytes.size());
    std::memcpy(out, bytes.data(), bytes.size());
    return int32_t(bytes.size());
}

}  // namespace

extern "C" {

// These two return the length of what they wrote, or -length where the room does not suffice.
int32_t ts_start(const Tables* tables, int32_t longest, int32_t depth, uint8_t* out, int32_t room) {
    Run run(*tables, 0);
    return report(run, *tables, {Frame{tables->root, 0, 0, 0, NO_LINK, 0}}, longest, depth, out, room);
}

// Returns 0 where a byte is refused, and ADVANCE_TOO_COSTLY where the work or the position's size passes its limit.
int32_t ts_advance(const Tables* tables, const uint8_t* position, const uint8_t* data, int32_t n, int32_t longest, int32_t depth,
                   int64_t step_limit, uint8_t* out, int32_t room) {
    Run run(*tables, step_limit);
    Frames frames, next;
    run.read(position, frames);
    for (int32_t i = 0; i < n; ++i) {
        run.step(frames, data[i], next);
        if (run.too_costly()) return ADVANCE_TOO_COSTLY;
        if (next.empty()) return 0;
        frames.swap(next);
    }
    const int32_t length = report(run, *tables, frames, longest, depth, out, room);
    return std::abs(int64_t(length)) > POSITION_BYTES_LIMIT ? ADVANCE_TOO_COSTLY : length;
}

// `special` is the trie of the tokens that `trie`'s plain row leaves out: the only ones in doubt where any character may come.
int32_t ts_fill(const Tables* tables, const Trie* trie, const Trie* special, const uint8_t* position, uint32_t* row,
                int64_t step_limit) {
    Run run(*tables, step_limit);
    std::vector<Frames> at_depth(size_t(trie->longest) + 1);
    std::vector<int64_t> free_characters(size_t(trie->longest) + 1);
    run.read(position, at_depth[0]);
    free_characters[0] = run.free_characters(at_depth[0]);
    if (free_characters[0] >= trie->longest) {
        std::memcpy(row, trie->plain_row, size_t(trie->n_words) * sizeof(uint32_t));
        trie = special;
    } else {
        std::memset(row, 0, size_t(trie->n_words) * sizeof(uint32_t));
    }
    for (int32_t node = 0; node < trie->n_nodes;) {
        const int32_t depth = trie->depth[node];
        int32_t with_tokens = node + 1;
        if (trie->plain[node] && free_characters[depth - 1] >= trie->height[node]) {
            with_tokens = trie->end[node];   // the whole subtree
        } else {
            run.step(at_depth[depth - 1], trie->byte[node], at_depth[depth]);
            if (run.too_costly()) return FILL_TOO_COSTLY;
            if (at_depth[depth].empty()) {
                node = trie->end[node];
                continue;
            }
            free_characters[depth] = run.free_characters(at_depth[depth]);
        }
        for (int32_t i = trie->token_begin[node]; i < trie->token_begin[with_tokens]; ++i) {
            const int32_t token = trie->tokens[i];
            row[token >> 5] |= uint32_t(1) << (token & 31);
        }
        node = with_tokens;
    }
    return 0;
}

}  // extern "C"
