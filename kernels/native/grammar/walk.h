// From a position to a mask: the walk of a machine along a trie of tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "masks.h"
#include "run.h"
#include "trie.h"

namespace grammar {

// Told once when a walk turns out to be long: time to let other threads go on.
struct Patience {
    virtual void long_walk() = 0;
    virtual ~Patience() = default;
};

// Characters that surely are taken, `most` of them in any order. `exact`: and no more of them.
struct Stretch {
    Charset chars;
    int64_t most = 0;
    bool exact = false;

    bool covers(const SubtreeText& text) const { return text.whole && text.most <= most && chars.covers(text.chars); }
};

class Walk {
  public:
    explicit Walk(Run& run) : run_(run) {}

    void begin(const Tables& tables, int64_t work_limit, Patience* patience);

    // Find the tokens of `trie` whose bytes are all taken; false where the work passes its limit. With `exits`
    // a text is walked by itself: where it ends inside tokens, their rests are left open and `exits` gets the node's number.
    // Tokens that begin with a byte of `left_out` are passed over.
    bool fill(const Trie& trie, const Place& start, Found& found, std::vector<int32_t>* exits = nullptr, Bytes left_out = {});

    // The characters that one frame of a place takes as long as they come, looking at most `longest` characters ahead.
    Stretch stretch_of(const Place& place, const Frame& frame, int32_t longest);

    Run& run() { return run_; }

  private:
    // What is known of the frames at one depth.
    struct Level {
        Place place;
        std::vector<Stretch> stretches;
        const Bytes* crowd = nullptr;   // the bytes of the children, where they are many
        Bytes left;                     // ... then those that are still to be looked at
        int32_t first = 0, next = 0, last = 0;   // else children by number
    };
    // The edges of a state that lead to one target under one condition.
    struct Bundle {
        uint64_t round = 0;
        int32_t state = -1, target = POP;   // POP: there is none
        Charset chars;
        Op op = ALWAYS;
        int64_t x = 0;
    };

    struct Known {
        uint64_t round = 0;
        int32_t state = -1;
        int64_t b = 0;
        Stretch stretch;
    };

    Run& run_;
    const Tables* t_ = nullptr;
    Patience* patience_ = nullptr;
    std::vector<Level> levels_;
    std::vector<Bundle> bundles_;
    std::vector<Known> known_;
    uint64_t round_ = 0;   // only what was remembered since the last `begin` counts

    bool left_text(const Frame& frame, const Frame& start) const;
    void look_ahead(Level& level, const Trie& trie, const Node& node);
    static int32_t next_child(Level& level);
    Stretch indent_of(const Frame& frame) const;
    Stretch chain_from(const Frame& frame, int32_t longest);
    const Bundle& bundle_of(int32_t state);
    Bundle make_bundle(int32_t state) const;
};

}  // namespace grammar
