// A grammar's machine over a vocabulary, with the positions and rows that it keeps.
#pragma once

#include <cstdint>
#include <string>

#include "frames.h"
#include "masks.h"
#include "tables.h"
#include "vocabulary.h"

namespace grammar {

enum class Outcome { TAKEN, REFUSED, TOO_COSTLY };

// Everything but `compute` is called under the interpreter's lock.
class Machine {
  public:
    static constexpr size_t POSITION_BYTES_LIMIT = size_t(64) << 20;   // of all live positions

    Machine(const Tables& tables, Vocabulary& vocabulary, int64_t mask_steps, int64_t token_steps);
    ~Machine();

    FrameSet* start() { return start_; }   // borrowed
    FrameSet* keep(FrameSet* position) { return ++position->readers, position; }
    void release(FrameSet* position) { positions_.release(position); }

    // Where taken, `to` is the position after the bytes, with one more reader.
    Outcome advance(const FrameSet* from, const uint8_t* bytes, size_t n, FrameSet*& to);
    bool may_end(const FrameSet* position);

    // The bytes that can come next.
    Outcome next_bytes(const FrameSet* position, Bytes& bytes);

    // The bytes that have no alternative from here on, at most `most`; `ends`: after them nothing but the end is possible.
    Outcome forced(const FrameSet* position, size_t most, std::string& bytes, bool& ends);

    // The mask of a position where it is known: borrowed, or null.
    Mask* known_mask(FrameSet* position);

    // Compute it; the interpreter's lock is not needed. False where the work passes the limit.
    bool compute(const FrameSet* position, Patience* patience, Computed& mask);

    // Remember what was computed.
    Mask* learn(FrameSet* position, Computed& mask);

    const Vocabulary& vocabulary() const { return vocabulary_; }
    int64_t mask_steps() const { return mask_steps_; }
    int64_t token_steps() const { return token_steps_; }

  private:
    Tables tables_;
    Vocabulary& vocabulary_;
    int64_t mask_steps_, token_steps_;
    Interner positions_;
    MaskTable masks_;
    FrameSet* start_;
    int32_t climbs_;       // links that a token can climb
    uint32_t round_ = 0;
    Key key_;              // of the position last looked up
    std::vector<FrameSet*> level_, below_;   // while a key is written

    bool write_key(FrameSet* position);
    void write_memory(const Memory& memory, const FrameSet* position);
    int32_t how_far_tokens_climb() const;
};

}  // namespace grammar
