// A tokenizer's vocabulary, and all that grammars over it share.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "masks.h"
#include "texts.h"
#include "trie.h"
#include "walk.h"

namespace grammar {

struct Vocabulary {
    Vocabulary(size_t n_tokens, size_t bytes_limit);

    Trie all;                       // every token that has bytes
    Trie special;                   // those that may not stand in a JSON string as they are
    size_t n_tokens, n_words, bytes_limit;
    std::vector<int32_t> eos_ids;
    std::vector<uint8_t> is_eos;    // [n_tokens]
    std::vector<uint8_t> bytes;     // of all tokens, one after the other
    std::vector<uint32_t> begin;    // [n_tokens + 1], cuts `bytes`
    int32_t closers = 0;            // most bytes of one token that can end a rule of a JSON grammar
    Masks masks;
    size_t entry_bytes = 0;         // of all mask tables
    Texts texts;

    // The mask of a position; false where the work passes `limit`.
    bool compute(const Tables& tables, const FrameSet* position, int64_t limit, Patience* patience, Computed& mask);

    // The row of the tokens of at most `characters` characters that may stand in a JSON string as they are.
    const uint32_t* plain_row(int64_t characters);

    void add(MaskTable* table);
    void remove(MaskTable* table);
    void make_room();               // forget masks until the limit holds, as far as they are not in use
    size_t bytes_used() { return masks.bytes() + entry_bytes + texts.bytes(); }

    // Called once `bytes` and `begin` are there.
    void build_tries();

  private:
    std::vector<int32_t> characters_;   // [n_tokens]: of a plain token, else -1
    std::vector<std::unique_ptr<uint32_t[]>> plain_rows_;
    std::mutex plain_mutex_;
    MaskTable* next_swept_ = nullptr;

    bool settles(const Stretch& stretch) const;
    const Trie& begun(const Stretch& stretch, Computed& mask);
    bool compute_text(Walk& walk, const Tables& tables, const Frame& frame, const Stretch& stretch, const TextKey& key,
                      int64_t limit, Patience* patience, Computed& mask);
    bool compute_beside(Walk& walk, const Tables& tables, const Place& place, const Stretch& stretch, int64_t limit,
                        Patience* patience, Computed& mask, bool& done);
    std::shared_ptr<const Text> text_of(Walk& walk, const Tables& tables, const Frame& frame, const Stretch& stretch,
                                        const Key& key, int64_t limit, Patience* patience);
};

}  // namespace grammar
