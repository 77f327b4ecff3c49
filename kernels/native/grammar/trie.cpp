#include "trie.h"

#include <algorithm>

namespace grammar {

namespace {

constexpr int CROWD = 6;   // children from which it pays to look only at those whose byte may come

int trailing_zeros(uint64_t word) {
    int n = 0;
    if (!(word & 0xFFFFFFFF)) n += 32, word >>= 32;
    if (!(word & 0xFFFF)) n += 16, word >>= 16;
    if (!(word & 0xFF)) n += 8, word >>= 8;
    if (!(word & 0xF)) n += 4, word >>= 4;
    if (!(word & 0x3)) n += 2, word >>= 2;
    return n + !(word & 1);
}

int ones(uint64_t word) {
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    return int(((word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F) * 0x0101010101010101 >> 56);
}


// Reads UTF-8: how many bytes of a character are due, and the range of the next (Unicode's table of well-formed sequences).
struct Utf8 {
    uint8_t due = 0, low = 0x80, high = 0xBF;
    bool malformed = false;

    bool at_boundary() const { return !malformed && due == 0; }

    void read(uint8_t byte) {
        if (malformed) return;
        if (due) {
            malformed = byte < low || byte > high;
            low = 0x80, high = 0xBF, --due;
            return;
        }
        if (byte < 0x80) return;
        due = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
        malformed = byte < 0xC2 || byte > 0xF4;
        if (byte == 0xE0) low = 0xA0;
        if (byte == 0xED) high = 0x9F;
        if (byte == 0xF0) low = 0x90;
        if (byte == 0xF4) high = 0x8F;
    }
};

// Lays out the nodes of sorted spellings, depth first but for the children of a node, which are neighbours.
class Builder {
  public:
    Builder(const std::vector<Spelling>& spellings, Trie& trie) : spellings_(spellings), trie_(trie) {}

    void build() {
        size_t first = 0;
        while (first < spellings_.size() && spellings_[first].first.empty()) ++first;
        for (size_t i = first; i < spellings_.size(); ++i) trie_.tokens.push_back(spellings_[i].second);
        skipped_ = first;
        trie_.nodes.push_back({0, 0, int32_t(trie_.tokens.size()), -1, 0, 0});
        trie_.texts.emplace_back();
        open_.push_back({0, 0, Utf8{}, first, spellings_.size()});
        while (!open_.empty()) {
            const Open next = open_.back();
            open_.pop_back();
            add_children(next);
        }
        for (size_t i = parents_.size(); i-- > 0;) add_to_parent(int32_t(i) + 1, parents_[i]);
        for (size_t i = 1; i < trie_.nodes.size(); ++i) finish(i);
    }

  private:
    // A node whose children are still to come: those of the spellings from `first` to `last`, by their byte at `depth`.
    struct Open {
        int32_t node;
        size_t depth;
        Utf8 state;
        size_t first, last;
    };

    const std::vector<Spelling>& spellings_;
    Trie& trie_;
    size_t skipped_ = 0;
    std::vector<Open> open_;
    std::vector<int32_t> parents_;                           // [nodes - 1]
    std::vector<uint16_t> characters_ = {0}, deepest_ = {0};   // [nodes], on the way from the root
    std::vector<char> malformed_ = {0};

    void add_children(const Open& above) {
        size_t at = above.first;
        while (at < above.last && spellings_[at].first.size() == above.depth) ++at;   // tokens that end at the node
        const int32_t first_child = int32_t(trie_.nodes.size());
        const size_t first_open = open_.size();
        while (at < above.last) {
            const char byte = spellings_[at].first[above.depth];
            size_t end = at;
            while (end < above.last && spellings_[end].first[above.depth] == byte) ++end;
            add_child(above, uint8_t(byte), at, end);
            at = end;
        }
        Node& node = trie_.nodes[size_t(above.node)];
        node.first_child = first_child;
        node.n_children = uint16_t(trie_.nodes.size() - size_t(first_child));
        if (node.n_children >= CROWD) {
            node.crowd = int32_t(trie_.crowds.size());
            trie_.crowds.emplace_back();
            for (size_t i = first_open; i < open_.size(); ++i) trie_.crowds.back().add(trie_.nodes[size_t(open_[i].node)].byte);
        }
        std::reverse(open_.begin() + std::ptrdiff_t(first_open), open_.end());
    }

    void add_child(const Open& above, uint8_t byte, size_t first, size_t last) {
        const int32_t number = int32_t(trie_.nodes.size());
        trie_.nodes.push_back({0, int32_t(first - skipped_), int32_t(last - skipped_), -1, 0, byte});
        SubtreeText text;
        text.whole = above.state.at_boundary();
        if (byte < 0x80) text.chars.add(byte);
        else text.chars.others = true;
        trie_.texts.push_back(text);
        Utf8 state = above.state;
        const bool starts = state.due == 0;
        state.read(byte);
        parents_.push_back(above.node);
        characters_.push_back(uint16_t(characters_[size_t(above.node)] + starts));
        deepest_.push_back(characters_.back());
        malformed_.push_back(state.malformed);
        trie_.longest = std::max(trie_.longest, int32_t(above.depth) + 1);
        open_.push_back({number, above.depth + 1, state, first, last});
    }

    void add_to_parent(int32_t node, int32_t parent) {
        trie_.texts[size_t(parent)].chars.add(trie_.texts[size_t(node)].chars);
        deepest_[size_t(parent)] = std::max(deepest_[size_t(parent)], deepest_[size_t(node)]);
        malformed_[size_t(parent)] |= malformed_[size_t(node)];
    }

    void finish(size_t node) {
        trie_.texts[node].whole &= !malformed_[node];
        trie_.texts[node].most = uint16_t(deepest_[node] - characters_[size_t(parents_[node - 1])]);
    }
};

}  // namespace

void Bytes::add(int32_t low, int32_t high) {
    if (low > high) return;
    for (int word = low >> 6; word <= high >> 6; ++word) {
        const int first = word == low >> 6 ? low & 63 : 0, last = word == high >> 6 ? high & 63 : 63;
        words[word] |= ~uint64_t(0) << first & ~uint64_t(0) >> (63 - last);
    }
}

int Bytes::take_lowest() {
    for (int i = 0; i < 4; ++i) {
        if (!words[i]) continue;
        const int byte = 64 * i + trailing_zeros(words[i]);
        words[i] &= words[i] - 1;
        return byte;
    }
    return -1;
}

int Bytes::count_below(uint8_t byte) const {
    int n = ones(words[byte >> 6] & ((uint64_t(1) << (byte & 63)) - 1));
    for (int i = 0; i < byte >> 6; ++i) n += ones(words[i]);
    return n;
}

void Charset::add(int32_t first, int32_t last) {
    for (int32_t c = std::max(first, 0); c <= std::min(last, 127); ++c) add(uint8_t(c));
}

Trie build_trie(std::vector<Spelling>& spellings) {
    std::sort(spellings.begin(), spellings.end());
    Trie trie;
    Builder(spellings, trie).build();
    return trie;
}

int32_t plain_characters(const uint8_t* text, size_t n) {
    Utf8 state;
    int32_t characters = 0;
    for (size_t i = 0; i < n; ++i) {
        if (text[i] < 0x20 || text[i] == '"' || text[i] == '\\') return -1;
        characters += state.due == 0;
        state.read(text[i]);
        if (state.malformed) return -1;
    }
    return characters;
}

}  // namespace grammar
