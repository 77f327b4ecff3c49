// The masks of texts, shared by all grammars of a vocabulary.
//
// Most states in which many tokens fit lie in the body of a JSON string, and strings are alike from one grammar to the next:
// what differs is what follows the closing quote. So a text's own part of the mask is kept under the structure of its automaton,
// together with a trie of what tokens hold behind the quote; only that trie is walked anew for each position.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "masks.h"
#include "walk.h"

namespace grammar {

struct Vocabulary;

// The body of a JSON string from one state on, seen from inside.
struct Text {
    std::vector<uint32_t> row;     // tokens that stay inside or end with the quote
    std::vector<int32_t> special;  // those of them that are not plain, where these are few
    bool has_special = false;      // they are, and so `special` holds
    Trie rests;                    // what tokens hold behind the quote
    size_t bytes() const { return row.size() * sizeof(uint32_t) + special.size() * sizeof(int32_t) + rests.bytes(); }
};

// How a text closes: by POP, or by an edge to a state of its own rule.
struct TextKey {
    Key words;
    int32_t after = POP;
    size_t n_states = 0;
};

class Texts {
  public:
    explicit Texts(size_t bytes_limit) : bytes_limit_(bytes_limit) {}

    // The structure of the text that a frame stands in; false where it is none that could be shared.
    bool key_of(const Tables& tables, const Frame& frame, int32_t longest, TextKey& key);

    std::shared_ptr<const Text> find(const Key& key);
    void put(const Key& key, std::shared_ptr<const Text> text);
    size_t bytes();

  private:
    struct Hash { size_t operator()(const Key& key) const { return size_t(hash_of(key)); } };

    size_t bytes_limit_, bytes_ = 0;
    std::mutex mutex_;   // any thread may ask
    std::unordered_map<Key, std::shared_ptr<const Text>, Hash> texts_;
};

}  // namespace grammar
