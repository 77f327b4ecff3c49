// Frames and sets of frames: what a position in a grammar is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hashing.h"

namespace grammar {

struct FrameSet;
struct Mask;
class Masks;

constexpr uint32_t TRANSIENT = ~0u;   // the readers of what lives in an arena
constexpr int32_t UNBEGUN = -1, AT_ONCE = -2;   // where a distinct text begins: nowhere; at the next character

// The code points read since the outermost distinct place began, as a chain from the last one back. The empty one is null.
struct Record {
    uint64_t hash;
    Record* next;           // in its bucket
    const Record* before;
    uint32_t readers;
    int32_t point, length;
    int32_t brace;          // where the last { stands, or -1
};

// A distinct text that was finished, normalised; its code points follow it.
struct Word {
    uint64_t hash;
    Word* next;
    uint32_t readers, n;

    const int32_t* begin() const { return reinterpret_cast<const int32_t*>(this + 1); }
    const int32_t* end() const { return begin() + n; }
};

// What a frame remembers under a distinctness constraint; pointers to its used texts follow it, sorted. Nothing is null.
struct Memory {
    uint64_t hash;
    Memory* next;
    uint32_t readers, n;
    int32_t start;          // in the record: of the distinct text that this frame reads itself
    bool inside;            // a distinct text of a frame that it returns to is being read

    bool recording() const { return inside || start != UNBEGUN; }
    const Word* const* begin() const { return reinterpret_cast<const Word* const*>(this + 1); }
    const Word* const* end() const { return begin() + n; }
};

// One place in one rule; `link` holds the frames to return to, null behind the root.
struct Frame {
    int32_t state;
    uint32_t partial;
    int64_t a, b, c;
    const Memory* memory;
    const FrameSet* link;

    bool operator==(const Frame& o) const {
        return state == o.state && partial == o.partial && a == o.a && b == o.b && c == o.c && memory == o.memory &&
               link == o.link;
    }
    bool operator<(const Frame& o) const {
        if (state != o.state) return state < o.state;
        if (partial != o.partial) return partial < o.partial;
        if (a != o.a) return a < o.a;
        if (b != o.b) return b < o.b;
        if (c != o.c) return c < o.c;
        return memory != o.memory ? memory < o.memory : link < o.link;
    }
};

using Frames = std::vector<Frame>;

// A configuration while it is worked on.
struct Place {
    Frames frames;
    const Record* record = nullptr;
};

// An immutable, sorted, non-empty set of frames, which follow it in memory, with the record where it is a whole configuration.
// A lasting set is interned in its machine, so that equal sets are one object, and counts its readers; a transient one lives
// in the arena of a run.
struct FrameSet {
    uint64_t hash;
    FrameSet* next;
    const Record* record;
    Mask* mask;          // a lasting set that was a position: its mask, once known
    uint32_t readers;
    uint32_t n;
    uint32_t round, number;   // for numbering the sets of one position

    bool transient() const { return readers == TRANSIENT; }
    const Frame* begin() const { return reinterpret_cast<const Frame*>(this + 1); }
    const Frame* end() const { return begin() + n; }
    Place place() const { return {Frames(begin(), end()), record}; }
};

void sort_and_drop_twins(Frames& frames);

// What one run makes, all forgotten together. Equal things are one object, also with what was adopted.
class Arena {
  public:
    static constexpr size_t BYTES_LIMIT = size_t(64) << 20;

    FrameSet* intern(Frames& frames, const Record* record = nullptr);   // sorts the frames first
    const Record* append(const Record* before, int32_t point);
    const Word* word(const std::vector<int32_t>& points);
    const Memory* memory(bool inside, int32_t start, std::vector<const Word*>& used);   // null for nothing
    const Memory* begun(const Memory* memory, int32_t start);   // the same with another start

    // Know the records, words and memories of a lasting position, and its sets.
    void adopt(const FrameSet* position);
    void reset();
    size_t bytes() const { return bytes_; }
    const std::vector<FrameSet*>& sets() const { return sets_.items(); }   // links before their users

  private:
    std::vector<std::unique_ptr<uint64_t[]>> chunks_;
    Slots<FrameSet> sets_;
    Slots<Record> records_;
    Slots<Word> words_;
    Slots<Memory> memories_;
    size_t chunk_ = 0, room_ = 0, bytes_ = 0;
    uint64_t* free_ = nullptr;

    void* allocate(size_t bytes);
};

// The lasting sets of one machine. Not for two threads at once: all calls are made under the interpreter's lock.
class Interner {
  public:
    explicit Interner(Masks& masks) : masks_(masks) {}
    ~Interner();

    FrameSet* keep(Place& place, const Arena& arena);   // the lasting twin of a configuration; the caller is one more reader
    void release(FrameSet* set);
    size_t bytes() const { return bytes_; }

  private:
    Masks& masks_;
    Buckets<FrameSet> sets_;
    Buckets<Record> records_;
    Buckets<Word> words_;
    Buckets<Memory> memories_;
    std::vector<FrameSet*> dying_;
    size_t bytes_ = 0;

    FrameSet* intern(const Frames& frames, const Record* record);   // takes over one reader of the record and of each memory
    const Record* lasting(const Record* record);     // these give one more reader
    const Word* lasting(const Word* word);
    const Memory* lasting(const Memory* memory);
    void make_lasting(Frames& frames);
    void release(const Record* record);
    void release(const Memory* memory);
    void destroy(FrameSet* set);
    void* allocate(size_t bytes);
    void free(void* memory, size_t bytes);
};

}  // namespace grammar
