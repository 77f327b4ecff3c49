#include "walk.h"

#include <algorithm>

namespace grammar {

namespace {

constexpr int64_t LONG_WALK = 20'000;      // steps, some tenths of a millisecond
constexpr size_t N_KNOWN = 256;             // states remembered, by the low bits of their number
constexpr int32_t MANY_TOKENS = 4;         // from which it pays to know what surely is taken
constexpr size_t FEW_FRAMES = 4;           // of which stretches are looked for

bool covers_all_others(const Tables& t, int32_t first, int32_t last, int32_t target, Op op) {
    int32_t expected = 0x80;
    for (int32_t e = first; e < last; ++e) {
        if (t.edge_high[e] < 0x80 || t.edge_low[e] == CLOSE) continue;
        if (t.edge_target[e] != target || t.edge_op[e] != op) return false;
        if (t.edge_low[e] > expected && !(expected == 0xD800 && t.edge_low[e] == 0xE000)) return false;
        expected = t.edge_high[e] + 1;
    }
    return expected >= CLOSE;
}

}  // namespace

void Walk::begin(const Tables& tables, int64_t work_limit, Patience* patience) {
    t_ = &tables;
    patience_ = patience;
    run_.begin(tables, work_limit);
    bundles_.resize(N_KNOWN);
    known_.resize(N_KNOWN);
    ++round_;
}

bool Walk::fill(const Trie& trie, const Place& start, Found& found, std::vector<int32_t>* exits,
                Bytes left_out) {
    if (levels_.size() < size_t(trie.longest) + 1) levels_.resize(size_t(trie.longest) + 1);
    levels_[0].place = start;
    const Node* nodes = trie.nodes.data();
    const int32_t* tokens = trie.tokens.data();
    look_ahead(levels_[0], trie, nodes[0]);
    for (size_t depth = 0;;) {
        Level& above = levels_[depth];
        const int32_t number = next_child(above);
        if (number < 0) {
            if (depth-- == 0) return true;
            continue;
        }
        const Node& node = nodes[number];
        if (depth == 0 && left_out.has(node.byte)) continue;
        const auto covers = [&](const Stretch& stretch) { return stretch.covers(trie.texts[size_t(number)]); };
        if (std::any_of(above.stretches.begin(), above.stretches.end(), covers)) {
            found.add(tokens + node.first_token, tokens + node.last_token);
            continue;
        }
        Level& here = levels_[depth + 1];
        run_.step(above.place, node.byte, here.place);
        if (run_.work() > LONG_WALK && patience_) {
            patience_->long_walk();
            patience_ = nullptr;
        }
        if (run_.too_costly()) return false;
        if (here.place.frames.empty()) continue;
        found.add(tokens + node.first_token, tokens + trie.last_own_token(node));
        if (node.n_children == 0) continue;
        if (exits && left_text(here.place.frames.front(), start.frames.front())) {
            exits->push_back(number);
            continue;
        }
        look_ahead(here, trie, node);
        ++depth;
    }
}

bool Walk::left_text(const Frame& frame, const Frame& start) const {
    return frame.link != start.link || t_->mode[frame.state] == RAW;
}

int32_t Walk::next_child(Level& level) {
    if (!level.crowd) return level.next == level.last ? -1 : level.next++;
    const int byte = level.left.take_lowest();
    return byte < 0 ? -1 : level.first + level.crowd->count_below(uint8_t(byte));
}

void Walk::look_ahead(Level& level, const Trie& trie, const Node& node) {
    level.first = level.next = node.first_child, level.last = node.first_child + node.n_children;
    level.crowd = node.crowd < 0 ? nullptr : &trie.crowds[size_t(node.crowd)];
    if (level.crowd) {
        level.left = Bytes{};
        run_.may_read(level.place, level.left);
        level.left.keep(*level.crowd);
    }
    level.stretches.clear();
    if (node.last_token - node.first_token < MANY_TOKENS || level.place.frames.size() > FEW_FRAMES) return;
    for (const Frame& frame : level.place.frames) {
        if (trie.special && t_->mode[frame.state] >= JSON_STRING) continue;
        const Stretch stretch = t_->space[frame.state] ? indent_of(frame) : stretch_of(level.place, frame, trie.longest);
        if (stretch.most > 0) level.stretches.push_back(stretch);
    }
}

// Behind a newline any number of spaces and tabs may come, up to the limit.
Stretch Walk::indent_of(const Frame& frame) const {
    if (t_->space[frame.state] != SPACES || frame.partial >> 8 == 0) return {};
    return {BLANK, int64_t(MAX_INDENT) - (frame.partial & 255), false};
}

Stretch Walk::stretch_of(const Place& place, const Frame& frame, int32_t longest) {
    if (frame.partial || !run_.steady(place, frame)) return {};
    if (t_->free[frame.state] == FREE) return {t_->mode[frame.state] == TEXT ? EVERY : PLAIN, UNBOUNDED, true};
    Known& known = known_[size_t(frame.state) & (N_KNOWN - 1)];
    if (known.round != round_ || known.state != frame.state || known.b != frame.b)
        known = {round_, frame.state, frame.b, chain_from(frame, longest)};
    return known.stretch;
}

// From state to state over the characters that the first one takes to its widest target.
Stretch Walk::chain_from(const Frame& frame, int32_t longest) {
    const Bundle first = bundle_of(frame.state);
    Stretch stretch{first.chars, 0};
    int64_t room = frame.b;
    for (int32_t state = frame.state; stretch.most < longest;) {
        const Bundle& bundle = bundle_of(state);
        if (bundle.target == POP || !bundle.chars.covers(first.chars)) break;
        if (bundle.op == TAKE && room <= bundle.x) break;
        if (bundle.target == state) {   // round and round, as long as there is room
            stretch.exact = state == frame.state;
            stretch.most = bundle.op == ALWAYS || room == UNBOUNDED ? UNBOUNDED : stretch.most + room - bundle.x;
            break;
        }
        if (bundle.op == TAKE && room != UNBOUNDED) --room;
        ++stretch.most;
        state = bundle.target;
    }
    return stretch;
}

const Walk::Bundle& Walk::bundle_of(int32_t state) {
    Bundle& kept = bundles_[size_t(state) & (N_KNOWN - 1)];
    if (kept.round != round_ || kept.state != state) {
        kept = make_bundle(state);
        kept.round = round_;
    }
    return kept;
}

// The widest: that of the target that most ASCII characters lead to.
Walk::Bundle Walk::make_bundle(int32_t state) const {
    const int32_t first = t_->edge_begin[state], last = t_->edge_begin[state + 1];
    const uint8_t mode = t_->mode[state];
    int32_t widest = -1, width = 0;
    for (int32_t e = first; e < last && t_->edge_low[e] < 128; ++e) {
        const bool open = t_->edge_target[e] != POP && t_->edge_op[e] <= TAKE;
        const int32_t own = std::min(t_->edge_high[e], 127) - t_->edge_low[e] + 1;
        if (open && own > width) widest = e, width = own;
    }
    Bundle bundle;
    bundle.state = state;
    if (widest < 0 || t_->space[state]) return bundle;
    bundle.target = t_->edge_target[widest], bundle.op = Op(t_->edge_op[widest]);
    for (int32_t e = first; e < last; ++e) {
        if (t_->edge_low[e] == CLOSE || t_->edge_target[e] != bundle.target || t_->edge_op[e] != bundle.op) continue;
        bundle.chars.add(t_->edge_low[e], t_->edge_high[e]);
        if (bundle.op == TAKE) bundle.x = std::max(bundle.x, t_->edge_x[e]);
    }
    bundle.chars.others = mode != RAW && covers_all_others(*t_, first, last, bundle.target, bundle.op);
    if (mode >= JSON_STRING) bundle.chars.low &= PLAIN.low, bundle.chars.high &= PLAIN.high;
    return bundle;
}

}  // namespace grammar
