// Tokens as a byte trie, and what each subtree is made of.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace grammar {

// A set of bytes.
struct Bytes {
    uint64_t words[4] = {0, 0, 0, 0};

    bool has(uint8_t byte) const { return words[byte >> 6] >> (byte & 63) & 1; }
    void add(uint8_t byte) { words[byte >> 6] |= uint64_t(1) << (byte & 63); }
    void add(int32_t low, int32_t high);
    void keep(const Bytes& o) {
        for (int i = 0; i < 4; ++i) words[i] &= o.words[i];
    }
    int take_lowest();                  // removes it; -1 where there is none
    int count_below(uint8_t byte) const;
};

// A set of characters: each ASCII one by itself, all others together.
struct Charset {
    uint64_t low = 0, high = 0;   // ASCII 0..63, 64..127
    bool others = false;

    bool covers(const Charset& o) const { return !(o.low & ~low) && !(o.high & ~high) && (others || !o.others); }
    void add(uint8_t byte) { (byte < 64 ? low : high) |= uint64_t(1) << (byte & 63); }
    void add(int32_t first, int32_t last);   // the ASCII part of a range
    void add(const Charset& o) { low |= o.low, high |= o.high, others |= o.others; }
};

constexpr Charset EVERY{~uint64_t(0), ~uint64_t(0), true};

constexpr Charset BLANK{uint64_t(1) << ' ' | uint64_t(1) << '\t', 0, false};

// What may stand in a JSON string as it is.
constexpr Charset PLAIN{~uint64_t(0) << 32 & ~(uint64_t(1) << '"'), ~(uint64_t(1) << ('\\' - 64)), true};

// The characters of all tokens of a subtree, from its first byte on.
struct SubtreeText {
    Charset chars;
    uint16_t most = 0;    // characters of one token, one that is not whole counted too
    bool whole = false;   // a character starts here, and all below is well-formed UTF-8
};

// The children of a node are neighbours, in the order of their bytes.
struct Node {
    int32_t first_child;
    int32_t first_token, last_token;   // of the whole subtree; those that end here come first
    int32_t crowd;                     // where many children: the set of their bytes, in Trie::crowds; else -1
    uint16_t n_children;
    uint8_t byte;
};

struct Trie {
    std::vector<Node> nodes;           // the root first
    std::vector<SubtreeText> texts;    // [nodes]
    std::vector<Bytes> crowds;
    std::vector<int32_t> tokens;
    int32_t longest = 0;               // bytes of the longest token
    bool special = false;              // no token may stand in a JSON string as it is

    size_t bytes() const {
        return nodes.size() * (sizeof(Node) + sizeof(SubtreeText)) + crowds.size() * sizeof(Bytes) +
               tokens.size() * sizeof(int32_t);
    }

    // The tokens that end at a node, as a range of `tokens`.
    int32_t last_own_token(const Node& node) const {
        return node.n_children ? nodes[size_t(node.first_child)].first_token : node.last_token;
    }
};

using Spelling = std::pair<std::string, int32_t>;   // bytes, token

Trie build_trie(std::vector<Spelling>& spellings);   // sorts them

// How many characters a text has, one that is not whole counted too; -1 where it holds others than PLAIN, or is malformed.
int32_t plain_characters(const uint8_t* text, size_t n);

}  // namespace grammar
