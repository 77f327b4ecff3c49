// Steps where something must be new: what is read is recorded, what was read is remembered, and no byte leads to where only
// used texts can be written. kernels/pushdown.py says what happens when, in the numbers that it gives its rules.

#include <algorithm>

#include "distinct.h"
#include "run.h"

namespace grammar {

namespace {

constexpr int32_t FEW_CALLS = 16;
constexpr size_t SEARCH_STEPS = 2000;   // as kernels/pushdown.py has it: the same searches must give up

int32_t length_of(const Record* record) { return record ? record->length : 0; }
bool blank(int32_t point) { return point == ' ' || point == '\n' || point == '\t'; }

bool recording(const Frame& f) { return f.memory && f.memory->recording(); }

bool holds(const Memory* memory, const Word* word) {
    return memory && std::binary_search(memory->begin(), memory->end(), word);
}

void sort_and_drop_doubles(Points& points) {
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
}

// The first point of a range that is not in a sorted alphabet; beyond it where there is none.
int32_t first_outside(const Points& alphabet, int32_t low, int32_t high) {
    auto at = std::lower_bound(alphabet.begin(), alphabet.end(), low);
    for (; low <= high && at != alphabet.end() && *at == low; ++at) ++low;
    return low;
}

}  // namespace

void Run::step_distinct(const Place& from, int32_t symbol, bool by_byte, Place& out) {
    by_byte_ = by_byte;
    record_ = recorded_ = from.record;
    out.frames.clear();
    with_returns(from, waiting_);
    work_ += int64_t(waiting_.size());
    for (const Frame& frame : waiting_) read(frame, symbol, out.frames);
    call_all(waiting_, symbol, out.frames);
    bool is_recording = false;
    for (Frame& f : out.frames) {
        if (f.memory && f.memory->start == AT_ONCE) f.memory = arena_.begun(f.memory, length_of(recorded_));
        is_recording |= recording(f);
    }
    sort_and_drop_twins(out.frames);
    out.record = is_recording ? recorded_ : nullptr;
    by_byte_ = true;
}

// A character, however it is spelled; whitespace between tokens is left out.
void Run::read_point(const Frame& f, int32_t point, Frames& out) {
    if (t_->mode[f.state] != RAW && f.partial) {
        std::vector<Range> ranges;
        may_become(t_->mode[f.state], f.partial, ranges);
        if (std::none_of(ranges.begin(), ranges.end(), [&](const Range& r) { return r.low <= point && point <= r.high; })) return;
    }
    take(f, point, out);
}

void Run::take_recorded(const Frame& f, int32_t edge, int32_t point, Frames& out) {
    const Record* record = record_;
    if (recording(f) && (t_->mode[f.state] != RAW || !blank(point))) record = arena_.append(record_, point);
    if (length_of(record) > length_of(recorded_)) recorded_ = record;
    const Memory* memory = f.memory;
    if (!remember(edge, record, memory)) return;
    const int32_t target = t_->edge_target[edge];
    if (target == POP) {
        if (f.link) return_to(f.link, record, out);
        return;
    }
    out.push_back(Frame{target, 0, f.a, f.b, f.c, memory, f.link});
    apply(out.back(), t_->edge_op[edge], t_->edge_x[edge], t_->edge_y[edge]);
}

// The memory after an edge; false where it would read an undeclared name again.
bool Run::remember(int32_t edge, const Record* record, const Memory*& memory) {
    const uint8_t op = t_->edge_op[edge];
    if ((op != MORE && op != NAME && op != OTHER) || !t_->tally.object_remembers[t_->edge_y[edge]]) return true;
    if (op == NAME) {
        memory = arena_.begun(memory, UNBEGUN);
    } else if (op == MORE) {
        if (t_->edge_x[edge]) memory = arena_.begun(memory, AT_ONCE);
    } else {
        const Word* name = arena_.word(text_of(record, memory->start));
        if (holds(memory, name)) return false;
        std::vector<const Word*> used(memory->begin(), memory->end());
        used.push_back(name);
        memory = arena_.memory(memory->inside, UNBEGUN, used);
    }
    return true;
}

// The frames of a link once what they called has ended, but for those whose item is not new.
void Run::return_to(const FrameSet* link, const Record* record, Frames& out) {
    for (const Frame& f : *link) {
        out.push_back(f);
        if (!(t_->marks[f.state] & DISTINCT)) continue;
        const Word* item = arena_.word(normalised(text_of(record, f.memory->start)));
        if (holds(f.memory, item)) {
            out.pop_back();
            continue;
        }
        std::vector<const Word*> used(f.memory->begin(), f.memory->end());
        used.push_back(item);
        out.back().memory = arena_.memory(f.memory->inside, UNBEGUN, used);
    }
}

bool Run::steady(const Place& place, const Frame& frame) {
    if (!t_->distinct || !frame.memory) return true;
    if (t_->marks[frame.state] & AWAITS) return false;
    if (is_endless(frame.state, frame.b)) return true;
    if (t_->tight) return false;
    back_.assign(1, frame);
    return at_ease(place.record, back_, nullptr);
}

// Whether a frame reads, or may begin, a text that any character may go on, so that it can differ from all others. Where
// texts are endless this holds under a TIGHT mark too: a search would never come to its end.
bool Run::may_differ(const Frame& f) const {
    if (is_free(f.state, f.b)) return true;
    if (t_->mode[f.state] != RAW) return false;
    if (begins_free(f, f.b)) return true;
    const int32_t which = t_->call_list[f.state];
    if (which == NO_CALLS || t_->list_begin[which + 1] - t_->list_begin[which] > FEW_CALLS) return false;
    for (int32_t c = t_->list_begin[which]; c < t_->list_begin[which + 1]; ++c) {
        const Frame start = start_of(c, f);
        if (t_->call_op[c] == ALWAYS && t_->mode[start.state] == RAW && begins_free(start, start.b)) return true;
    }
    return false;
}

bool Run::some_may_differ(const Place& place) const {
    return std::any_of(place.frames.begin(), place.frames.end(), [&](const Frame& f) { return may_differ(f); });
}

// Whether behind a quote a text begins that any character may go on.
bool Run::begins_free(const Frame& f, int64_t b) const {
    const int32_t edge = find(f, '"');
    return edge >= 0 && t_->edge_target[edge] != POP && is_free(t_->edge_target[edge], b);
}

bool Run::is_free(int32_t state, int64_t b) const {
    return is_endless(state, b) || (!t_->tight && t_->free[state] == FREE_COUNTED && b > 0);
}

bool Run::is_endless(int32_t state, int64_t b) const {
    return t_->free[state] == FREE || (t_->free[state] == FREE_COUNTED && b == UNBOUNDED);
}

// Whether something new can still be written at every place where it must be.
bool Run::viable(const Place& place) {
    if (some_may_differ(place)) return true;
    with_returns(place, waiting_);
    if (at_ease(place.record, waiting_, nullptr)) return true;
    Frames frames = place.frames;   // whitespace so far makes no difference
    for (Frame& f : frames)
        if (t_->mode[f.state] == RAW && !t_->final[f.state]) f.partial = 0;
    const FrameSet* first = arena_.intern(frames, place.record);
    const auto known = viable_.find(first);
    if (known != viable_.end()) return known->second;
    return viable_[first] = leads_on(first);
}

// Looks for something new by single characters, depth first.
bool Run::leads_on(const FrameSet* first) {
    std::vector<const FrameSet*> stack{first};
    std::unordered_set<const FrameSet*> seen{first};
    Alphabet alphabet;
    Place here, after;
    while (!stack.empty() && !too_costly()) {
        here = stack.back()->place();
        stack.pop_back();
        alphabet = {};
        with_returns(here, waiting_);
        if (seen.size() > SEARCH_STEPS || at_ease(here.record, waiting_, &alphabet)) return true;
        for (int32_t point : characters(here, alphabet.sorted())) {
            step_distinct(here, point, false, after);
            if (after.frames.empty()) continue;
            if (some_may_differ(after)) return true;
            const FrameSet* following = arena_.intern(after.frames, after.record);
            if (seen.insert(following).second) stack.push_back(following);
        }
    }
    return false;
}

// The used texts that what a frame reads so far can still become: ever fewer, so those before the last character are asked.
const std::vector<const Word*>& Run::still_extending(const Memory* memory, const Record* record) {
    auto& known = extending_[memory];
    const auto found = known.find(record);
    if (found != known.end()) return found->second;
    const auto before = record ? known.find(record->before) : known.end();
    std::vector<const Word*> live;
    const auto try_word = [&](const Word* word) {
        if (extends(*word, record, memory->start)) live.push_back(word);
    };
    if (before != known.end()) std::for_each(before->second.begin(), before->second.end(), try_word);
    else std::for_each(memory->begin(), memory->end(), try_word);
    return known[record] = std::move(live);
}

// Whether some frame is, so that what is left can be written; else `alphabet` gets the characters of what stands in the way.
// `stack` holds the frames to begin with, and is used up.
bool Run::at_ease(const Record* record, Frames& stack, Alphabet* alphabet) {
    std::vector<const FrameSet*> seen;
    for (size_t i = 0; i < stack.size(); ++i) {
        const Frame f = stack[i];
        const Memory* memory = f.memory;
        if (!memory) return true;
        const bool all = t_->marks[f.state] & (AWAITS | TIGHT);
        bool blocked = false;
        const std::vector<const Word*>* live = all || memory->start == UNBEGUN ? nullptr : &still_extending(memory, record);
        const Word* const* first = live ? live->data() : memory->begin();
        const Word* const* last = live ? first + live->size() : all ? memory->end() : first;
        for (; first != last; ++first) {
            const Word* word = *first;
            blocked = true;
            if (!alphabet) break;
            alphabet->add(*word);
        }
        if (blocked) continue;
        if (!memory->inside) return true;
        if (!f.link || std::find(seen.begin(), seen.end(), f.link) != seen.end()) continue;
        seen.push_back(f.link);
        stack.insert(stack.end(), f.link->begin(), f.link->end());
    }
    return false;
}

// The characters to try, those last that are in no text which is in the way.
Points Run::characters(const Place& place, const Points& alphabet) {
    struct Reader {
        int32_t state;
        uint32_t partial;
    };
    std::vector<Reader> readers;
    const auto add = [&](int32_t state, uint32_t partial) {
        const auto same = [&](const Reader& r) { return r.state == state && r.partial == partial; };
        if (std::none_of(readers.begin(), readers.end(), same)) readers.push_back({state, partial});
    };
    with_returns(place, waiting_);
    for (const Frame& f : waiting_) add(f.state, t_->mode[f.state] == RAW ? 0 : f.partial);
    Points familiar, strange;
    std::vector<Range> ranges;
    for (size_t i = 0; i < readers.size(); ++i) {
        const auto [state, partial] = readers[i];
        const int32_t which = partial ? NO_CALLS : t_->call_list[state];
        if (which != NO_CALLS)
            for (int32_t c = t_->list_begin[which]; c < t_->list_begin[which + 1]; ++c) add(t_->call_start[c], 0);
        ranges.clear();
        may_become(t_->mode[state], partial, ranges);
        for (const Range& range : ranges)
            for (int32_t e = first_edge(state, range.low); e < t_->edge_begin[state + 1] && t_->edge_low[e] <= range.high; ++e) {
                const int32_t low = std::max(t_->edge_low[e], range.low), high = std::min(t_->edge_high[e], range.high);
                const auto first = std::lower_bound(alphabet.begin(), alphabet.end(), low);
                familiar.insert(familiar.end(), first, std::upper_bound(first, alphabet.end(), high));
                const int32_t outside = first_outside(alphabet, low, high);
                if (outside <= high) strange.push_back(outside);
            }
    }
    sort_and_drop_doubles(familiar);
    sort_and_drop_doubles(strange);
    std::reverse(familiar.begin(), familiar.end());
    familiar.insert(familiar.end(), strange.rbegin(), strange.rend());
    return familiar;
}

}  // namespace grammar
