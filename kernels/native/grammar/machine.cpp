#include "machine.h"

#include <algorithm>

#include "distinct.h"

namespace grammar {

namespace {

constexpr size_t KEY_WORDS_LIMIT = 1 << 14;   // a longer key is not worth keeping
constexpr int32_t WITHOUT_LIMIT = INT32_MAX;
constexpr uint64_t NO_LINK = ~uint64_t(0);

Run& run_of_this_thread() {
    static thread_local Run run;
    return run;
}

bool closes(int32_t point) { return point == '"' || point == ']' || point == '}' || point == CLOSE; }

}  // namespace

Machine::Machine(const Tables& tables, Vocabulary& vocabulary, int64_t mask_steps, int64_t token_steps)
    : tables_(tables), vocabulary_(vocabulary), mask_steps_(mask_steps), token_steps_(token_steps), positions_(vocabulary.masks),
      masks_(vocabulary.masks, vocabulary.entry_bytes), climbs_(how_far_tokens_climb()) {
    Place root{{Frame{tables.root, 0, 0, 0, 0, nullptr, nullptr}}, nullptr};
    start_ = positions_.keep(root, Arena());
    vocabulary.add(&masks_);
}

Machine::~Machine() {
    vocabulary_.remove(&masks_);
    positions_.release(start_);
}

Outcome Machine::advance(const FrameSet* from, const uint8_t* bytes, size_t n, FrameSet*& to) {
    static thread_local Place place, next;
    Run& run = run_of_this_thread();
    run.begin(tables_, token_steps_);
    run.adopt(from);
    place.frames.assign(from->begin(), from->end());
    place.record = from->record;
    for (size_t i = 0; i < n; ++i) {
        run.step(place, bytes[i], next);
        if (run.too_costly()) return Outcome::TOO_COSTLY;
        if (next.frames.empty()) return Outcome::REFUSED;
        std::swap(place, next);
    }
    if (run.arena().bytes() + positions_.bytes() > POSITION_BYTES_LIMIT) return Outcome::TOO_COSTLY;
    to = positions_.keep(place, run.arena());
    return Outcome::TAKEN;
}

bool Machine::may_end(const FrameSet* position) {
    Run& run = run_of_this_thread();
    run.begin(tables_, token_steps_);
    run.adopt(position);
    return run.may_end(position->place());
}

Outcome Machine::next_bytes(const FrameSet* position, Bytes& bytes) {
    Run& run = run_of_this_thread();
    run.begin(tables_, token_steps_);
    run.adopt(position);
    const Place place = position->place();
    Place next;
    for (int32_t byte = 0; byte < 256; ++byte) {
        run.step(place, uint8_t(byte), next);
        if (run.too_costly()) return Outcome::TOO_COSTLY;
        if (!next.frames.empty()) bytes.add(uint8_t(byte));
    }
    return Outcome::TAKEN;
}

Outcome Machine::forced(const FrameSet* position, size_t most, std::string& bytes, bool& ends) {
    Run& run = run_of_this_thread();
    run.begin(tables_, token_steps_);
    run.adopt(position);
    Place place = position->place(), next, only;
    for (ends = false; bytes.size() < most;) {
        Bytes possible;
        run.may_read(place, possible);
        int found = 0;
        uint8_t last = 0;
        for (int32_t byte = 0; byte < 256 && found < 2; ++byte) {
            if (!possible.has(uint8_t(byte))) continue;
            run.step(place, uint8_t(byte), next);
            if (run.too_costly()) return Outcome::TOO_COSTLY;
            if (next.frames.empty()) continue;
            ++found, last = uint8_t(byte);
            std::swap(only, next);
        }
        const bool may_stop = run.may_end(place);
        ends = found == 0 && may_stop;
        if (found != 1 || may_stop) break;
        bytes.push_back(char(last));
        std::swap(place, only);
    }
    return Outcome::TAKEN;
}

Mask* Machine::known_mask(FrameSet* position) {
    if (position->mask) return position->mask;
    if (!write_key(position)) return nullptr;
    Mask* mask = masks_.find(key_, hash_of(key_));
    if (mask) ++mask->readers, position->mask = mask;
    return mask;
}

bool Machine::compute(const FrameSet* position, Patience* patience, Computed& mask) {
    return vocabulary_.compute(tables_, position, mask_steps_, patience, mask);
}

Mask* Machine::learn(FrameSet* position, Computed& computed) {
    if (position->mask) return position->mask;
    Mask* mask = position->mask = vocabulary_.masks.keep(computed);
    if (!write_key(position)) return mask;
    const uint64_t hash = hash_of(key_);
    if (!masks_.find(key_, hash)) {
        ++mask->readers;
        masks_.put(key_, hash, mask);
        if (vocabulary_.bytes_used() > vocabulary_.bytes_limit) vocabulary_.make_room();
    }
    return mask;
}

// Frames breadth first from the top, as far down as a token can climb, with counts clipped to what can matter: equal keys have
// equal masks. False where the key is too long to keep.
bool Machine::write_key(FrameSet* position) {
    const int64_t most = vocabulary_.all.longest + 1 + tables_.reach;
    uint32_t fresh = 0;
    level_.assign(1, position);
    ++round_;
    key_.clear();
    for (int32_t depth = 1; !level_.empty(); ++depth) {
        below_.clear();
        for (FrameSet* set : level_) {
            key_.push_back(set->n);
            for (const Frame& f : *set) {
                auto* link = const_cast<FrameSet*>(f.link);
                if (link && link->round != round_) {
                    link->round = round_, link->number = fresh++;
                    below_.push_back(link);
                }
                const bool counted = tables_.counted[f.state];
                key_.push_back(uint64_t(uint32_t(f.state)) << 32 | f.partial);
                key_.push_back(uint64_t(counted ? std::min(f.a, most) : f.a));
                key_.push_back(uint64_t(counted ? std::min(f.b, most) : f.b));
                key_.push_back(uint64_t(f.c));
                key_.push_back(link && depth < climbs_ ? link->number : NO_LINK);
                if (f.memory) write_memory(*f.memory, position);
            }
        }
        if (key_.size() > KEY_WORDS_LIMIT) return false;
        if (depth == climbs_) break;
        level_.swap(below_);
    }
    return true;
}

// What a frame is reading as a distinct text is left out where it is too long to be repeated within a token, no used one
// extends it, and it goes through free states, so that it can't be the last value there is.
void Machine::write_memory(const Memory& memory, const FrameSet* position) {
    key_.push_back(uint64_t(memory.n) << 2 | uint64_t(memory.inside) << 1 | uint64_t(memory.start != UNBEGUN));
    for (const Word* word : memory) {
        key_.push_back(word->n);
        for (int32_t point : *word) key_.push_back(uint32_t(point));
    }
    if (memory.start == UNBEGUN) return;
    const auto is_free = [&](const Frame& f) {
        return tables_.free[f.state] == FREE || (tables_.free[f.state] == FREE_COUNTED && f.b > 0);
    };
    const Points text = text_of(position->record, memory.start);
    const auto in_the_way = [&](const Word* word) { return extends(*word, position->record, memory.start); };
    const bool past = int64_t(text.size()) > vocabulary_.all.longest && !tables_.tight &&
                      std::all_of(position->begin(), position->end(), is_free) &&
                      std::none_of(memory.begin(), memory.end(), in_the_way);
    key_.push_back(past ? NO_LINK : text.size());
    for (size_t i = 0; i < text.size() && !past; ++i) key_.push_back(uint32_t(text[i]));
}

// In JSON a frame that others return to ends with a quote, a bracket or a brace: a token climbs one link for each, and a
// literal or number may end before them. Where a rule can end otherwise, a token may climb any number of links.
int32_t Machine::how_far_tokens_climb() const {
    std::vector<uint8_t> seen(size_t(tables_.n_states), 0);
    std::vector<int32_t> open;
    const auto reach = [&](int32_t state) {
        if (state >= 0 && !seen[size_t(state)]) seen[size_t(state)] = 1, open.push_back(state);
    };
    for (int32_t s = 0; s < tables_.n_states; ++s)
        if (tables_.call_list[s] != NO_CALLS && s != tables_.root) reach(tables_.call_return[s]);   // the root returns nowhere
    while (!open.empty()) {
        const int32_t state = open.back();
        open.pop_back();
        for (int32_t e = tables_.edge_begin[state]; e < tables_.edge_begin[state + 1]; ++e) {
            if (tables_.edge_target[e] == POP && !(tables_.edge_low[e] == tables_.edge_high[e] && closes(tables_.edge_low[e])))
                return WITHOUT_LIMIT;
            reach(tables_.edge_target[e]);
        }
        if (tables_.final[state]) return WITHOUT_LIMIT;
        if (tables_.call_list[state] != NO_CALLS) reach(tables_.call_return[state]);
    }
    return vocabulary_.closers + 3;
}

}  // namespace grammar
