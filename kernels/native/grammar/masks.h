// Finished masks: what a walk found, how it is kept, and tables from positions to masks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hashing.h"

namespace grammar {

inline void set_bit(uint32_t* row, int32_t token) { row[token >> 5] |= uint32_t(1) << (token & 31); }

// Tokens as a walk finds them: a list as long as they are few, then a row.
class Found {
  public:
    void begin(size_t n_words);
    void add(const int32_t* first, const int32_t* last);
    void add_to(uint32_t* row) const;

    const std::vector<int32_t>& few() const { return few_; }
    uint32_t* many() { return is_many_ ? row_.data() : nullptr; }

  private:
    std::vector<int32_t> few_;
    std::vector<uint32_t> row_;
    size_t n_words_ = 0;
    bool is_many_ = false;

    void spill();
};

// A mask as it was computed: a base that many share, and the tokens beyond it.
struct Computed {
    const uint32_t* base = nullptr;           // null: no token
    std::shared_ptr<const void> owner;        // of the base, where it does not live as long as the vocabulary
    Found found;

    void write(uint32_t* row, size_t n_words) const;
};

// A whole row that is never written to again.
struct Row {
    uint64_t hash;
    Row* next;
    uint32_t readers;
    uint32_t* words;
};

// A mask as it is kept. Whoever points to it counts as a reader.
struct Mask {
    uint32_t readers, n;
    const uint32_t* base;
    Row* row;                                 // which holds the base, or null
    std::shared_ptr<const void> owner;

    const int32_t* begin() const { return reinterpret_cast<const int32_t*>(this + 1); }
    const int32_t* end() const { return begin() + n; }
    void write(uint32_t* row, size_t n_words) const;
};

// The masks of a vocabulary, whole rows each once. Everything here happens under the interpreter's lock.
class Masks {
  public:
    explicit Masks(size_t n_words) : n_words_(n_words) {}
    ~Masks();

    Mask* keep(Computed& computed);   // the caller is its reader; may change what was computed
    void release(Mask* mask);
    size_t count() const { return count_; }
    size_t bytes() const { return bytes_; }
    size_t n_words() const { return n_words_; }

  private:
    size_t n_words_, count_ = 0, bytes_ = 0;
    Buckets<Row> rows_;

    size_t row_bytes() const { return n_words_ * sizeof(uint32_t); }
    Row* share(const uint32_t* words);
    void release(Row* row);
};

using Key = std::vector<uint64_t>;

uint64_t hash_of(const Key& key);

// The masks of one machine by their keys. An entry is forgotten when no one asked for it between two sweeps.
class MaskTable {
  public:
    MaskTable(Masks& masks, size_t& bytes_used) : masks_(masks), bytes_used_(bytes_used) {}
    ~MaskTable();

    Mask* find(const Key& key, uint64_t hash);            // borrowed, or null
    void put(const Key& key, uint64_t hash, Mask* mask);   // takes over one reader
    void sweep();

    MaskTable *before = nullptr, *after = nullptr;   // in the vocabulary's ring of tables

  private:
    struct Entry {
        uint64_t hash;
        Entry* next;
        Mask* mask;
        uint32_t length;
        bool used;
    };

    Masks& masks_;
    size_t& bytes_used_;   // by the entries of all tables of the vocabulary
    Buckets<Entry> entries_;

    static size_t bytes_of(const Entry& entry) { return sizeof(Entry) + entry.length * sizeof(uint64_t); }
    void forget(Entry* entry);
};

}  // namespace grammar
