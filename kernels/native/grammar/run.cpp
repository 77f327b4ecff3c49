#include "run.h"

#include <algorithm>

namespace grammar {

namespace {

constexpr uint32_t REFUSED = ~0u;
constexpr size_t MANY_CALLS = 64, FEW_LINKS = 16;

uint32_t next_space(uint32_t partial, uint8_t byte) {
    const uint32_t newlines = partial >> 8, indent = partial & 255;
    if (byte == '\n') return indent == 0 && newlines < MAX_NEWLINES ? (newlines + 1) << 8 : REFUSED;
    if (byte == ' ' || (byte == '\t' && newlines)) return indent < (newlines ? MAX_INDENT : 1) ? partial + 1 : REFUSED;
    return REFUSED;
}

}  // namespace

void Run::begin(const Tables& tables, int64_t work_limit) {
    t_ = &tables;
    limit_ = work_limit;
    work_ = 0;
    by_byte_ = true;
    record_ = recorded_ = nullptr;
    if (!viable_.empty()) viable_.clear();
    if (!extending_.empty()) extending_.clear();
    arena_.reset();
}

void Run::step(const Place& from, uint8_t byte, Place& out) {
    if (t_->distinct) {
        step_distinct(from, byte, true, out);
        if (!out.frames.empty() && !viable(out)) out.frames.clear();
        return;
    }
    out.frames.clear();
    out.record = nullptr;
    if (from.frames.size() == 1 && !t_->final[from.frames[0].state]) {
        const Frame& frame = from.frames[0];
        read_byte(frame, byte, out.frames);
        if (t_->call_list[frame.state] != NO_CALLS)
            t_->calling_starts ? call_all(from.frames, byte, out.frames) : call(frame, byte, out.frames);
        ++work_;
    } else {
        step_all(from, byte, out);
    }
    sort_and_drop_twins(out.frames);
}

bool Run::may_end(const Place& place) {
    with_returns(place, waiting_);
    return std::any_of(waiting_.begin(), waiting_.end(), [&](const Frame& f) {
        return t_->final[f.state] && !f.partial && !f.link;
    });
}

// The frames and those that they may return to without reading. A link is returned to once: its frames are the same each time.
void Run::with_returns(const Place& place, Frames& all) {
    all = place.frames;
    returned_.clear();
    for (size_t i = 0; i < all.size(); ++i) {
        const Frame f = all[i];
        if (t_->final[f.state] && !f.partial && f.link && first_return_to(f.link)) return_to(f.link, place.record, all);
    }
}

bool Run::first_return_to(const FrameSet* link) {
    if (returned_.size() < FEW_LINKS) {
        if (std::find(returned_.begin(), returned_.end(), link) != returned_.end()) return false;
        returned_.push_back(link);
        if (returned_.size() == FEW_LINKS) many_returned_ = {returned_.begin(), returned_.end()};
        return true;
    }
    return many_returned_.insert(link).second;
}

void Run::step_all(const Place& from, uint8_t byte, Place& out) {
    with_returns(from, waiting_);
    work_ += int64_t(waiting_.size());
    bool calling = false;
    for (const Frame& frame : waiting_) {
        read_byte(frame, byte, out.frames);
        calling |= t_->call_list[frame.state] != NO_CALLS;
    }
    if (calling) call_all(waiting_, byte, out.frames);
}

// One caller, so every called rule that leaves its registers alike has the same link.
void Run::call(const Frame& frame, uint8_t byte, Frames& out) {
    if (!may_call(frame)) return;
    const int32_t which = t_->call_list[frame.state];
    const FrameSet* link = nullptr;
    work_ += t_->list_begin[which + 1] - t_->list_begin[which];
    for (int32_t c = t_->list_begin[which]; c < t_->list_begin[which + 1]; ++c) {
        Frame start = start_of(c, frame);
        if (!may_start(start, byte)) continue;
        Frame back = back_of(frame);
        if (!apply(back, t_->call_op[c], t_->call_x[c], t_->call_y[c])) continue;
        if (!link || !(*link->begin() == back)) {
            back_.assign(1, back);
            link = arena_.intern(back_);
        }
        start.link = link;
        read_byte(start, byte, out);
    }
}

// Frames that call the same rule now are its common return address.
void Run::call_all(const Frames& callers, int32_t symbol, Frames& out) {
    calls_.clear();
    for (const Frame& frame : callers) add_calls(frame, symbol);
    while (!calls_.empty() && !too_costly()) {
        deeper_.clear();
        std::sort(calls_.begin(), calls_.end());
        for (size_t i = 0; i < calls_.size();) {
            Frame start = calls_[i].start;
            back_.clear();
            for (; i < calls_.size() && calls_[i].start == start; ++i) back_.push_back(calls_[i].back);
            start.link = arena_.intern(back_);
            read(start, symbol, out);
            if (t_->call_list[start.state] != NO_CALLS) deeper_.push_back(start);
        }
        calls_.clear();
        for (const Frame& frame : deeper_) add_calls(frame, symbol);
    }
}

void Run::add_calls(const Frame& frame, int32_t symbol) {
    const int32_t which = t_->call_list[frame.state];
    if (which == NO_CALLS || (by_byte_ && !may_call(frame))) return;
    work_ += t_->list_begin[which + 1] - t_->list_begin[which];
    if (too_costly()) return;
    Frame home = back_of(frame);
    if (t_->marks[home.state] & DISTINCT) home.memory = arena_.begun(home.memory, record_ ? record_->length : 0);
    std::vector<const Word*> none;
    const Memory* inside = home.memory && home.memory->recording() ? arena_.memory(true, UNBEGUN, none) : nullptr;
    for (int32_t c = t_->list_begin[which]; c < t_->list_begin[which + 1]; ++c) {
        Frame start = start_of(c, frame), back = home;
        start.memory = inside;
        if ((may_start(start, symbol) || t_->call_list[start.state] != NO_CALLS) &&
            apply(back, t_->call_op[c], t_->call_x[c], t_->call_y[c]))
            calls_.push_back({start, back});
    }
}

Frame Run::start_of(int32_t call, const Frame& caller) const {
    const bool deeper = t_->marks[caller.state] & DEEPER;
    const int64_t c = deeper ? ((caller.c >> DEPTH_SHIFT) + 1) << DEPTH_SHIFT : 0;
    return {t_->call_start[call], 0, t_->call_a[call], t_->call_b[call], c, nullptr, nullptr};
}

// The frame that a caller is once the called rule has ended.
Frame Run::back_of(const Frame& caller) const {
    return {t_->call_return[caller.state], 0, caller.a, caller.b, caller.c, caller.memory, caller.link};
}

// Whether a frame is at the beginning of a character, and behind its indent.
bool Run::may_call(const Frame& frame) const {
    if (t_->mode[frame.state] != RAW) return !frame.partial;
    return t_->space[frame.state] <= SPACES || frame.partial == indent_of(frame);
}

// False where the first state of a rule surely refuses what comes.
bool Run::may_start(const Frame& start, int32_t symbol) const {
    return t_->mode[start.state] != RAW || t_->space[start.state] || find(start, symbol) >= 0;
}

// Spaces due at a frame whose state reads an indent.
int64_t Run::indent_of(const Frame& frame) const {
    const int64_t depth = frame.c >> DEPTH_SHIFT;
    return t_->space[frame.state] == INDENT_INNER ? 2 * (depth + 1) : 2 * depth;
}

void Run::read(const Frame& f, int32_t symbol, Frames& out) {
    by_byte_ ? read_byte(f, uint8_t(symbol), out) : read_point(f, symbol, out);
}

void Run::read_byte(const Frame& f, uint8_t byte, Frames& out) {
    if (t_->mode[f.state] != RAW) return f.partial ? inside(f, byte, out) : first_byte(f, byte, out);
    uint32_t partial;
    if (t_->space[f.state] == SPACES && (byte == ' ' || byte == '\n' || byte == '\t')) {
        partial = next_space(f.partial, byte);
    } else if (t_->space[f.state] > SPACES && f.partial < indent_of(f)) {
        partial = byte == ' ' ? f.partial + 1 : REFUSED;
    } else {
        return take(f, byte, out);
    }
    if (partial == REFUSED) return;
    out.push_back(f);
    out.back().partial = partial;
}

void Run::may_read(const Place& place, Bytes& bytes) {
    if (t_->calling_starts) return bytes.add(0, 255);
    with_returns(place, waiting_);
    for (const Frame& f : waiting_) {
        may_read(f, bytes);
        const int32_t which = t_->call_list[f.state];
        if (which == NO_CALLS) continue;
        const int32_t first = t_->list_begin[which], last = t_->list_begin[which + 1];
        if (size_t(last - first) > MANY_CALLS) return bytes.add(0, 255);
        for (int32_t c = first; c < last; ++c) may_read(start_of(c, f), bytes);
    }
}

}  // namespace grammar
