#include "texts.h"

#include <algorithm>

namespace grammar {

namespace {

constexpr size_t MOST_STATES = 300, MOST_EDGES = 2'000;
constexpr int32_t NO_AFTER = -2, CLOSED = -1;

// Numbers the states of one text in the order in which they are reached.
class Numbering {
  public:
    std::vector<int32_t> states;

    int32_t number(int32_t state) {
        size_t slot = size_t(state) * 0x9E3779B1u & (slots_.size() - 1);
        for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1))
            if (states[size_t(slots_[slot])] == state) return slots_[slot];
        slots_[slot] = int32_t(states.size());
        states.push_back(state);
        if (2 * states.size() > slots_.size()) grow();
        return int32_t(states.size()) - 1;
    }

  private:
    std::vector<int32_t> slots_ = std::vector<int32_t>(16, -1);

    void grow() {
        slots_.assign(4 * slots_.size(), -1);
        for (size_t n = 0; n < states.size(); ++n) {
            size_t slot = size_t(states[n]) * 0x9E3779B1u & (slots_.size() - 1);
            while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
            slots_[slot] = int32_t(n);
        }
    }
};

bool inside_text(const Tables& t, int32_t state, uint8_t mode) {
    return t.mode[state] == mode && t.call_list[state] == NO_CALLS && !t.final[state];
}

}  // namespace

bool Texts::key_of(const Tables& t, const Frame& frame, int32_t longest, TextKey& key) {
    const uint8_t mode = t.mode[frame.state];
    if (mode < JSON_STRING) return false;
    Numbering reached;
    reached.number(frame.state);
    key.words.assign(1, mode);
    key.after = NO_AFTER;
    size_t n_edges = 0;
    int64_t reach = 0;
    bool counted = false;
    for (size_t n = 0; n < reached.states.size(); ++n) {
        const int32_t state = reached.states[n];
        const int32_t first = t.edge_begin[state], last = t.edge_begin[state + 1];
        n_edges += size_t(last - first);
        if (!inside_text(t, state, mode) || n_edges > MOST_EDGES || reached.states.size() > MOST_STATES) return false;
        key.words.push_back(uint64_t(last - first));
        for (int32_t e = first; e < last; ++e) {
            const int32_t target = t.edge_target[e];
            const uint8_t op = t.edge_op[e];
            if (op > DONE) return false;
            const bool closing = t.edge_low[e] == CLOSE;
            if (closing ? key.after != NO_AFTER && key.after != target : target == POP) return false;
            if (closing) key.after = target;
            const int32_t number = closing ? CLOSED : reached.number(target);
            key.words.push_back(uint64_t(uint32_t(t.edge_low[e])) << 32 | uint32_t(t.edge_high[e]));
            key.words.push_back(uint64_t(uint32_t(number)) << 32 | op);
            key.words.push_back(uint64_t(t.edge_x[e]));
            counted |= op != ALWAYS;
            reach = std::max(reach, op == TAKE ? t.edge_x[e] : 0);
        }
    }
    key.n_states = reached.states.size();
    if (key.after == NO_AFTER || (counted && key.after != POP)) return false;
    const int64_t most = longest + 1 + reach;
    key.words.push_back(counted ? uint64_t(std::min(frame.a, most)) : 0);
    key.words.push_back(counted ? uint64_t(std::min(frame.b, most)) : 0);
    return true;
}

std::shared_ptr<const Text> Texts::find(const Key& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = texts_.find(key);
    return found == texts_.end() ? nullptr : found->second;
}

void Texts::put(const Key& key, std::shared_ptr<const Text> text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t bytes = text->bytes() + key.size() * sizeof(uint64_t);
    if (bytes_ + bytes > bytes_limit_) texts_.clear(), bytes_ = 0;   // they are computed again when asked for
    if (texts_.emplace(key, std::move(text)).second) bytes_ += bytes;
}

size_t Texts::bytes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return bytes_;
}

}  // namespace grammar
