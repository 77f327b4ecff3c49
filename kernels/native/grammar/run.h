// One run of the machine: bytes in, sets of frames out.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "distinct.h"
#include "frames.h"
#include "tables.h"
#include "trie.h"

namespace grammar {

struct Range { int32_t low, high; };

// The code points that a character begun so can turn out to be: appends them as ranges.
void may_become(uint8_t mode, uint32_t partial, std::vector<Range>& ranges);

// Owns the transient sets that stepping makes; they are forgotten when it begins anew. For one thread at a time.
class Run {
  public:
    void begin(const Tables& tables, int64_t work_limit);

    // Once true, what `step` gives is not whole: the run is to be given up.
    bool too_costly() const { return work_ > limit_ || arena_.bytes() > Arena::BYTES_LIMIT; }
    int64_t work() const { return work_; }   // in frames read and rules called
    const Arena& arena() const { return arena_; }

    // The configuration after one byte; without frames where it is refused.
    void step(const Place& from, uint8_t byte, Place& out);

    // Every byte that is not refused, and perhaps some that are.
    void may_read(const Place& place, Bytes& bytes);

    bool may_end(const Place& place);

    // Whether no character that a frame takes in a text can lead to where nothing new is left to write, as long as the text
    // goes on.
    bool steady(const Place& place, const Frame& frame);

    // The run goes on from a lasting position.
    void adopt(const FrameSet* position) {
        if (t_->distinct) arena_.adopt(position);
    }

  private:
    // One rule as called from one frame.
    struct Call {
        Frame start, back;   // `start` has no link yet
        bool operator<(const Call& o) const { return start < o.start; }
    };

    const Tables* t_ = nullptr;
    int64_t limit_ = 0, work_ = 0;
    Arena arena_;
    Frames waiting_, back_, deeper_;
    std::vector<Call> calls_;
    std::vector<const FrameSet*> returned_;   // the first few links that were returned to
    std::unordered_set<const FrameSet*> many_returned_;   // all of them, once they are many
    std::unordered_map<const FrameSet*, bool> viable_;   // configurations that were looked into
    std::unordered_map<const Memory*, std::unordered_map<const Record*, std::vector<const Word*>>> extending_;
    bool by_byte_ = true;               // else a step reads a character, however it is spelled
    const Record *record_ = nullptr, *recorded_ = nullptr;   // before the step, and after it

    void with_returns(const Place& place, Frames& all);
    bool first_return_to(const FrameSet* link);
    void step_all(const Place& from, uint8_t byte, Place& out);
    void call(const Frame& frame, uint8_t byte, Frames& out);
    void call_all(const Frames& callers, int32_t symbol, Frames& out);
    void add_calls(const Frame& frame, int32_t symbol);
    bool may_call(const Frame& frame) const;
    bool may_start(const Frame& start, int32_t symbol) const;
    int64_t indent_of(const Frame& frame) const;
    Frame start_of(int32_t call, const Frame& caller) const;
    Frame back_of(const Frame& caller) const;
    void read(const Frame& f, int32_t symbol, Frames& out);
    void read_byte(const Frame& f, uint8_t byte, Frames& out);
    void take(const Frame& f, int32_t point, Frames& out);

    // Distinctness (new_texts.cpp).
    void step_distinct(const Place& from, int32_t symbol, bool by_byte, Place& out);
    void read_point(const Frame& f, int32_t point, Frames& out);
    void take_recorded(const Frame& f, int32_t edge, int32_t point, Frames& out);
    bool remember(int32_t edge, const Record* record, const Memory*& memory);
    void return_to(const FrameSet* link, const Record* record, Frames& out);
    bool viable(const Place& place);
    bool leads_on(const FrameSet* first);
    bool may_differ(const Frame& f) const;
    bool some_may_differ(const Place& place) const;
    bool begins_free(const Frame& f, int64_t b) const;
    bool is_free(int32_t state, int64_t b) const;
    bool is_endless(int32_t state, int64_t b) const;
    bool at_ease(const Record* record, Frames& stack, Alphabet* alphabet);
    const std::vector<const Word*>& still_extending(const Memory* memory, const Record* record);
    Points characters(const Place& place, const Points& alphabet);

    // Characters (decode.cpp).
    void first_byte(const Frame& f, uint8_t byte, Frames& out);
    void inside(const Frame& f, uint8_t byte, Frames& out);
    void plain_hex_digit(const Frame& f, uint32_t count, uint32_t value, Frames& out);
    void hex_digit(const Frame& f, uint32_t count, uint32_t value, Frames& out);
    void low_digit(const Frame& f, uint32_t count, uint32_t value, int digit, Frames& out);
    uint32_t utf8(const Frame& f, uint32_t kind, uint32_t count, uint32_t value) const;
    bool plain(const Frame& f) const { return t_->mode[f.state] == JSON_PLAIN; }

    // Edges and registers (edges.cpp).
    int32_t find(const Frame& f, int32_t point) const;
    bool allows(const Frame& f, int32_t edge) const;
    bool apply(Frame& f, uint8_t op, int64_t x, int64_t y) const;
    int32_t first_edge(int32_t state, int32_t point) const;
    bool open(const Frame& f, int32_t low, int32_t high) const;
    void may_read(const Frame& f, Bytes& bytes) const;
};

}  // namespace grammar
